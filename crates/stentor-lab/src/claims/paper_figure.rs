//! The figures of a paper, with the values of their points: as published, or as measured.

use super::expression::{Binding, Term};
use super::figures::{Figures, Interval};
use super::judge::{Bench, combinations};
use super::{ClaimsError, Dossier};
use serde::Deserialize;

/// The definition of a figure: its terms are those of claims.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureSpec {
    /// A name for links and files.
    id: String,
    title: String,
    unit: String,
    /// The compared systems, as a binding.
    systems: String,
    /// The points of each system, as bindings; empty for a single one.
    #[serde(default)]
    across: String,
    /// The value of a point.
    value: String,
    /// The published value, if it has other terms.
    #[serde(default)]
    published: String,
    /// The value over all points, if the paper prints that only.
    whole: Option<WholePoint>,
}

/// The point over all others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WholePoint {
    name: String,
    value: String,
}

/// A figure of a paper.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperFigure {
    /// A name for links and files.
    pub id: String,
    /// Its number in the paper, and what it shows.
    pub title: String,
    /// The unit of its values.
    pub unit: String,
    /// The compared systems.
    pub systems: Vec<String>,
    /// The names of the points.
    pub points: Vec<String>,
    /// The number of points that a line joins, because they are sizes.
    pub joined: usize,
    /// The value of each point, by system.
    pub values: Vec<Vec<Option<Interval>>>,
}

impl PaperFigure {
    /// Returns true if no point has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.iter().flatten().all(Option::is_none)
    }
}

impl Dossier {
    /// Returns the paper's figures with the values of measurements, or else with the published ones.
    pub fn paper_figures(&self, measured: Option<&Figures>) -> Result<Vec<PaperFigure>, ClaimsError> {
        self.definition.figures.iter().map(|spec| spec.figure(&self.figures, measured)).collect()
    }
}

impl FigureSpec {
    fn figure(&self, published: &Figures, measured: Option<&Figures>) -> Result<PaperFigure, ClaimsError> {
        let wrong = |source| ClaimsError::Syntax { id: self.id.clone(), source };
        let is_own = measured.is_none() && !self.published.is_empty();
        let value = Term::parse(if is_own { &self.published } else { &self.value }).map_err(wrong)?;
        let systems = Binding::parse_list(&self.systems).map_err(wrong)?;
        let across = Binding::parse_list(&self.across).map_err(wrong)?;
        let whole = self.whole.as_ref().map(|whole| Term::parse(&whole.value)).transpose().map_err(wrong)?;
        let bench = Bench {
            figures: measured.unwrap_or(published),
            complete: measured.is_none(),
            tie_share: 0.0,
            band_share: 0.0,
        };
        let (systems, points) = (combinations(&systems), combinations(&across));
        let of_system = |system: &Vec<(String, String)>| {
            let places = points.iter().map(|point| (&value, [system.as_slice(), point.as_slice()].concat()));
            let places = places.chain(whole.iter().map(|whole| (whole, system.clone())));
            let values = places.map(|(term, bound)| bench.estimate(term, &bound));
            let values = values.collect::<Result<Vec<_>, _>>();
            values.map_err(|source| ClaimsError::Judge { id: self.id.clone(), source })
        };
        Ok(PaperFigure {
            id: self.id.clone(),
            title: self.title.clone(),
            unit: self.unit.clone(),
            systems: systems.iter().map(|system| name(system)).collect(),
            points: points
                .iter()
                .map(|point| name(point))
                .chain(self.whole.iter().map(WholePoint::name))
                .collect(),
            joined: if across.len() == 1 { points.len() } else { 0 },
            values: systems.iter().map(of_system).collect::<Result<_, _>>()?,
        })
    }
}

impl WholePoint {
    fn name(&self) -> String {
        self.name.clone()
    }
}

fn name(bound: &[(String, String)]) -> String {
    bound.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
}
