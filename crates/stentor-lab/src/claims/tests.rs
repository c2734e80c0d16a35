use super::*;

mod language;
mod rounds;
mod settings;
mod studies;

fn dossier(id: &str) -> Dossier {
    Dossier::open(id).expect("readable").expect("known")
}

fn everything() -> impl Iterator<Item = Dossier> {
    STUDIES.into_iter().map(dossier)
}

fn judged(id: &str) -> Vec<Judged> {
    dossier(id).judge(None).expect("judged")
}
