//! The studies shipped with the laboratory.

/// Their ids, oldest first.
pub const STUDIES: [&str; 5] =
    ["cai-2009", "anacleto-2012", "nunes-2014", "isikligil-2017", "albertengo-2020"];

/// Returns the claims of a study and its files of figures.
pub(super) fn files(id: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match id {
        "cai-2009" => (
            include_str!("../../studies/cai-2009/claims.toml"),
            &[
                include_str!("../../studies/cai-2009/published.csv"),
                include_str!("../../studies/cai-2009/interviews.csv"),
                include_str!("../../studies/cai-2009/categories.csv"),
            ],
        ),
        "anacleto-2012" => (
            include_str!("../../studies/anacleto-2012/claims.toml"),
            &[include_str!("../../studies/anacleto-2012/published.csv")],
        ),
        "nunes-2014" => (
            include_str!("../../studies/nunes-2014/claims.toml"),
            &[include_str!("../../studies/nunes-2014/published.csv")],
        ),
        "isikligil-2017" => (
            include_str!("../../studies/isikligil-2017/claims.toml"),
            &[include_str!("../../studies/isikligil-2017/published.csv")],
        ),
        "albertengo-2020" => (
            include_str!("../../studies/albertengo-2020/claims.toml"),
            &[include_str!("../../studies/albertengo-2020/published.csv")],
        ),
        _ => return None,
    })
}

/// Returns the second coding of a study's statements.
pub(super) fn second_coding(id: &str) -> Option<&'static str> {
    (id == "cai-2009").then_some(include_str!("../../studies/cai-2009/interviews-second.csv"))
}
