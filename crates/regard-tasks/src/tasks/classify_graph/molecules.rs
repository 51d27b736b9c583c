//! Generated molecules: trees of atoms with single and double bonds. The label is the molecule's
//! functional group, which cannot be predicted from any single atom.
//!
//! An acid has a carbon with a double-bonded and a single-bonded oxygen, a ketone a carbon with
//! a double-bonded oxygen and no other, the rest neither.

use crate::data::graphs::LabelledGraph;
use crate::data::{GraphData, Part};
use regard_attention::Stream;

/// Names of the labels.
pub const LABELS: [&str; 3] = ["acid", "ketone", "none"];

const CARBON: u32 = 0;
const NITROGEN: u32 = 1;
const OXYGEN: u32 = 2;
/// Number of atom types.
const ATOMS: u32 = 3;

/// Generates a molecule, determined by seed, part and index.
pub fn molecule(seed: u64, part: Part, number: u64) -> LabelledGraph {
    let stream = Stream::new(seed, part as u64, number);
    let mut drawn = 0;
    let mut draw = |below: u32| {
        drawn += 1;
        stream.bits(drawn) % below
    };
    let label = draw(LABELS.len() as u32) as usize;
    let size = 6 + draw(9);
    // A branching chain of carbons and nitrogens.
    let mut atoms = vec![CARBON];
    let mut bonds = vec![];
    while atoms.len() < size as usize {
        let parent = draw(atoms.len() as u32);
        bonds.push((parent, atoms.len() as u32, 1));
        atoms.push(if draw(4) == 0 { NITROGEN } else { CARBON });
    }
    let mut add = |atoms: &mut Vec<u32>, parent: u32, order: u32| {
        bonds.push((parent, atoms.len() as u32, order));
        atoms.push(OXYGEN);
    };
    // Oxygens on other atoms than the group's, so that the presence of oxygen does not give the
    // label.
    let carbons: Vec<u32> = (0..size).filter(|i| atoms[*i as usize] == CARBON).collect();
    let group = carbons[draw(carbons.len() as u32) as usize];
    for atom in (0..size).filter(|atom| *atom != group) {
        match (draw(4), atoms[atom as usize]) {
            (0, _) => add(&mut atoms, atom, 1),
            (1, NITROGEN) => add(&mut atoms, atom, 2),
            _ => {}
        }
    }
    let orders: &[u32] = [&[2u32, 1][..], &[2], &[1]][label];
    orders.iter().for_each(|order| add(&mut atoms, group, *order));
    bonds.sort_unstable();
    let network = GraphData {
        features: atoms.iter().map(|atom| vec![(*atom, 1.0)]).collect(),
        columns: ATOMS as usize,
        labels: vec![None; atoms.len()],
        parts: vec![None; atoms.len()],
        edges: bonds.iter().map(|(a, b, _)| (*a, *b)).collect(),
        edge_features: bonds
            .iter()
            .map(|(_, _, order)| vec![f32::from(*order == 1), f32::from(*order == 2)])
            .collect(),
    };
    LabelledGraph { network, part: Some(part), label: LABELS[label].into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the label from its definition.
    fn group(network: &GraphData) -> usize {
        let is = |atom: u32, kind: u32| network.features[atom as usize][0].0 == kind;
        let oxygens = |carbon: u32, double: bool| {
            let bonds = network.edges.iter().zip(&network.edge_features);
            bonds
                .filter(|((a, b), order)| {
                    (order[1] == 1.0) == double
                        && (*a == carbon && is(*b, OXYGEN) || *b == carbon && is(*a, OXYGEN))
                })
                .count()
        };
        let carbons: Vec<u32> =
            (0..network.len() as u32).filter(|atom| is(*atom, CARBON)).collect();
        let with_double: Vec<u32> =
            carbons.into_iter().filter(|carbon| oxygens(*carbon, true) > 0).collect();
        match with_double.iter().any(|carbon| oxygens(*carbon, false) > 0) {
            true => 0,
            false if !with_double.is_empty() => 1,
            false => 2,
        }
    }

    #[test]
    fn a_molecule_has_the_group_that_its_label_says() {
        let mut seen = [0; LABELS.len()];
        for number in 0..500 {
            let found = molecule(7, Part::Train, number);
            let label = group(&found.network);
            assert_eq!(LABELS[label], found.label, "molecule {number}");
            seen[label] += 1;
            assert_eq!(found, molecule(7, Part::Train, number));
        }
        assert!(seen.iter().all(|n| *n > 100), "{seen:?}");
        assert_ne!(molecule(7, Part::Train, 1).network, molecule(7, Part::Test, 1).network);
    }
}
