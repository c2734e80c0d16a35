//! Property tests of an engine.

/// Defines a module of property tests: random scripts of the [`model`](crate::conformance::model) on the engine whose home `$make` returns.
/// The seed is fixed; `$cases` bounds the number of scripts. With `agrees $others`, so many scripts run on it and on a temporary
/// SQLite store, and both must return the same.
///
/// The crate that uses it needs proptest and tokio.
#[macro_export]
macro_rules! model_suite {
    ($name:ident, $make:expr, $cases:expr) => {
        $crate::model_suite! { @module $name, $make, $cases; {} }
    };
    ($name:ident, $make:expr, $cases:expr, agrees $others:expr) => {
        $crate::model_suite! { @module $name, $make, $cases; {
            proptest::proptest! {
                #![proptest_config(config($others))]

                #[test]
                fn whatever_happens_it_agrees_with_sqlite(script in scripts()) {
                    let reference = $crate::sqlite::SqliteStore::temporary().expect("a store");
                    wait_for($crate::conformance::model::agree(&reference, &$make(), &script));
                }
            }
        } }
    };
    (@module $name:ident, $make:expr, $cases:expr; { $($agreement:tt)* }) => {
        mod $name {
            use super::*;

            fn config(cases: u32) -> proptest::test_runner::Config {
                proptest::test_runner::Config {
                    cases,
                    failure_persistence: None,
                    rng_seed: proptest::test_runner::RngSeed::Fixed(20_170_824),
                    ..proptest::test_runner::Config::default()
                }
            }

            fn scripts()
            -> impl proptest::strategy::Strategy<Value = Vec<$crate::conformance::model::ModelStep>> {
                proptest::collection::vec(proptest::arbitrary::any::<(u8, u8, u8)>(), 1..160)
            }

            fn wait_for<T>(future: impl Future<Output = T>) -> T {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(future)
            }

            proptest::proptest! {
                #![proptest_config(config($cases))]

                #[test]
                fn whatever_happens_the_promises_hold(script in scripts()) {
                    wait_for($crate::conformance::model::run(&$make(), &script));
                }
            }

            $($agreement)*
        }
    };
}
