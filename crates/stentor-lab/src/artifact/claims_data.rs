//! The claims of all studies as one data set with stable ids, in JSON-LD.

use crate::claims::{ClaimsError, Dossier, STUDIES};
use serde_json::{Value, json};

/// The file of the data set, from the project's root.
pub const FILE: &str = "docs/studies/claims.json";

/// Makes the data set from the claims that come with the laboratory. An id is never given to another claim.
pub fn claims_data() -> Result<Value, ClaimsError> {
    let (mut papers, mut claims) = (Vec::new(), Vec::new());
    for study in STUDIES {
        let Some(dossier) = Dossier::open(study)? else { continue };
        let paper = dossier.paper();
        papers.push(json!({
            "@id": format!("#{study}"),
            "@type": "ScholarlyArticle",
            "name": paper.title,
            "author": paper.authors,
            "datePublished": paper.year.to_string(),
        }));
        claims.extend(dossier.judge(None)?.into_iter().map(|one| {
            json!({
                "@id": format!("#{}", one.statement.id),
                "@type": "Claim",
                "identifier": one.statement.id,
                "text": one.statement.text,
                "appearance": {"@id": format!("#{study}")},
                "verdictOfThePaper": one.published.verdict,
                "statement": one.statement,
            })
        }));
    }
    Ok(json!({
        "@context": {
            "@vocab": "https://schema.org/",
            "statement": {"@id": "urn:stentor:lab:statement", "@type": "@json"},
            "verdictOfThePaper": "urn:stentor:lab:verdict-of-the-paper",
        },
        "@id": "",
        "@type": "Dataset",
        "name": "Claims of studies of web services and push, as checks over their figures",
        "description": "Each claim has a stable id, its place in the paper, and checks in the language of docs/lab/claims.md.",
        "license": {"@id": "https://www.apache.org/licenses/LICENSE-2.0"},
        "version": env!("CARGO_PKG_VERSION"),
        "citation": papers,
        "hasPart": claims,
    }))
}
