//! The textbook comparison of RNN and self-attention, with measured values.

use super::ComparisonResult;
use super::distance::SYMBOLS;
use super::layer::LayerKind;

/// Returns heading and rows of the table; cells that were not measured are "–".
pub fn summary(findings: &[ComparisonResult]) -> (Vec<String>, Vec<Vec<String>>) {
    let get = |finding: &str, of: &str, what: &str| -> Option<f64> {
        findings.iter().find(|found| found.name == finding)?.get(of, what)
    };
    let plain = |finding: &str, name: &str| -> Option<f64> {
        findings.iter().find(|found| found.name == finding)?.numbers.get(name).copied()
    };
    let kinds = LayerKind::ALL.map(LayerKind::name);
    let mut heading = vec!["property".to_string()];
    heading.extend(kinds.iter().map(|name| name.to_string()));
    let mut rows = vec![];
    let mut row = |property: String, cell: &dyn Fn(&str) -> Option<String>| {
        let cells: Vec<Option<String>> = kinds.iter().map(|name| cell(name)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".into()));
            rows.push(std::iter::once(property).chain(cells).collect());
        }
    };
    let threads = plain("path", "threads").unwrap_or(2.0);
    row(format!("parallel: speed-up on {threads} threads"), &|name| {
        get("path", name, "speed_up").map(|gain| format!("{gain:.2}×"))
    });
    row("path: maximum length over 1024 positions (time steps or layers)".into(), &|name| {
        get("path", name, "steps_to_1024").map(|steps| steps.to_string())
    });
    row("cost by definition".into(), &|name| {
        let kind = LayerKind::ALL.into_iter().find(|kind| kind.name() == name)?;
        Some(kind.growth().into())
    });
    row("cost: time grows as L^".into(), &|name| {
        get("cost", name, "time_exponent").map(|slope| format!("{slope:.2}"))
    });
    let longest = plain("cost", "longest").unwrap_or(0.0);
    row(format!("cost: a step at length {longest}"), &|name| {
        get("cost", name, "seconds_at_longest").map(|s| format!("{:.1} ms", 1e3 * s))
    });
    row("memory grows as L^".into(), &|name| {
        get("cost", name, "memory_exponent").map(|slope| format!("{slope:.2}"))
    });
    row("long range: gradient left at a distance of 60".into(), &|name| {
        get("gradient", name, "at_60").map(|norm| match norm {
            0.0 => "0".into(),
            norm => format!("{norm:.0e}"),
        })
    });
    let furthest = plain("distance", "furthest").unwrap_or(0.0);
    let chance = 100.0 / SYMBOLS as f64;
    let recall = format!(
        "long range: accuracy of recalling the first symbol after {furthest} positions (chance: \
         {chance:.0} %)"
    );
    row(recall, &|name| {
        get("distance", name, "at_furthest").map(|share| format!("{:.0} %", 100.0 * share))
    });
    row("order: change of the last output when the earlier inputs are reversed".into(), &|name| {
        get("path", name, "order").map(|moved| match moved < 1e-4 {
            true => "none".into(),
            false => format!("{:.0} %", 100.0 * moved),
        })
    });
    (heading, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_what_was_measured() {
        let (heading, rows) = summary(&[]);
        assert_eq!((heading.len(), rows.len()), (6, 1), "only what is so by definition");
        let (_, rows) = summary(&[super::super::quick("gradient")]);
        assert!(rows.iter().any(|row| row[0].contains("gradient") && row.len() == 6));
    }
}
