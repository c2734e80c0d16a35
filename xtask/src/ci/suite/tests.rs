use super::*;

#[test]
fn a_test_is_counted_for_the_first_row_that_takes_it_and_all_others_run() {
    let promised = PromisedTests::on_page("");
    let mut counts = vec![0; FULL_ONLY.len()];
    let row = FULL_ONLY[0].name();
    let (package, module) = row.split_once(' ').unwrap();
    let tests = vec![format!("{module}::one_test"), "no_module_of_any_row::another_test".to_owned()];
    let choice = choose(package, tests.clone(), &promised, &mut counts);
    assert_eq!((choice.wanted, &choice.left_out[..]), (1, &tests[..1]));
    assert_eq!((counts[0], counts.iter().sum::<usize>()), (1, 1));
    let all = choice.with_all();
    assert_eq!((all.wanted, all.left_out.len()), (2, 0));
}
