//! Shortcuts for blocks, ranges and lists against the definition, `allows`.

use super::*;
use crate::attention::grid::{Dims, Positions};
use crate::rng::Stream;

fn masks(b: usize, t: usize, s: usize) -> Vec<(&'static str, Mask)> {
    let stream = Stream::new(1, 2, 3);
    let below = |at: u64, n: usize| (stream.bits(at) as usize % n) as i64;
    let allowed: Vec<bool> = (0..t * s).map(|c| stream.uniform(c as u64) < 0.6).collect();
    let per_head: Vec<bool> =
        (0..b * 2 * t * s).map(|c| stream.uniform(99 + c as u64) < 0.6).collect();
    let centres: Vec<f32> =
        (0..b * t).map(|c| stream.uniform(c as u64) * s as f32 * 1.2 - 1.0).collect();
    let (mut indptr, mut indices) = (vec![0], vec![]);
    for i in 0..t {
        indices.extend(
            (0..s as i64).filter(|j| stream.bits((i * s) as u64 + *j as u64).is_multiple_of(3)),
        );
        indptr.push(indices.len() as i64);
    }
    let mut order: Vec<i64> = (0..s as i64).collect();
    order.sort_by_key(|x| stream.bits(*x as u64));
    // A different order for each row, of the last keys only.
    let orders: Vec<Vec<i64>> = (0..b as u64)
        .map(|row| {
            let mut order: Vec<i64> = (0..s.min(t) as i64).collect();
            order.sort_by_key(|x| stream.bits(1000 * (row + 1) + *x as u64));
            order
        })
        .collect();
    // Several positions share a rank.
    let ranks: Vec<Vec<u32>> =
        orders.iter().map(|row| row.iter().map(|at| *at as u32 / 3).collect()).collect();
    let cells_per_row: Vec<bool> =
        (0..b * t * s).map(|c| stream.uniform(7 + c as u64) < 0.6).collect();
    let per_row: Vec<i64> = (0..b as u64).map(|r| below(r, s + 1)).collect();
    let per_query: Vec<i64> = (0..(b * t) as u64).map(|r| below(r, s + 1)).collect();
    let ids: Vec<i64> = (0..(b * s) as i64).map(|x| x / 5).collect();
    let pieces: Vec<i64> = (0..(b * s) as u64).map(|x| below(x, 3)).collect();
    let asking: Vec<i64> = (0..(b * t) as u64).map(|x| below(5 + x, 4)).collect();
    vec![
        ("full", full()),
        ("causal", causal()),
        ("lengths", lengths(&per_row)),
        ("lengths per query", lengths_per_query(&per_query)),
        ("window", window(3, 1)),
        ("expanded", expanded(4, 2, 3)),
        ("around", around(&centres, 2)),
        ("global", global_tokens(&[0, s / 2])),
        ("prefix", prefix(s / 3)),
        ("segments", segments(&ids)),
        ("segments in pieces", segments(&pieces)),
        ("segments between", segments_between(&asking, &pieces)),
        ("segments between, in one piece", segments_between(&asking, &ids)),
        ("segments and causal", segments(&ids) & causal()),
        ("permutation", permutation(&order, true)),
        ("permutation, content", permutation(&order, false)),
        ("permutations", permutations(&orders, true)),
        ("permutations, content", permutations(&orders, false)),
        ("ranked", ranked(&ranks, true)),
        ("ranked, content", ranked(&ranks, false)),
        ("permutations in segments", permutations(&orders, true) & segments(&ids)),
        ("edges", edges(&indptr, &indices)),
        ("dense", dense(allowed)),
        ("dense per row", dense_per_row(cells_per_row)),
        ("dense per head", dense_per_head(per_head)),
        ("and", causal() & window(4, 4) & lengths(&per_row)),
        ("longformer", global_tokens(&[0]) | window(2, 2)),
        ("not", !causal()),
        ("edges and causal", edges(&indptr, &indices) & causal()),
        ("edges or expanded", edges(&indptr, &indices) | expanded(2, 2, 2)),
    ]
}

#[test]
fn every_answer_agrees_with_the_definition() {
    for (t, s) in [(1, 1), (7, 7), (5, 19), (19, 5), (33, 40)] {
        let (b, h) = (2, 2);
        let dims = Dims { b, h, hk: 2, t, s, d: 4, dk: 4, e: 4 };
        let positions = [Positions::End, Positions::Offsets(vec![0, 3])];
        for (positions, (name, mask)) in
            positions.iter().flat_map(|p| masks(b, t, s).into_iter().map(move |m| (p, m)))
        {
            if (s < 2 && name == "global") || (s < 1 && name == "prefix") {
                continue;
            }
            let grid = Grid::new(dims, positions.clone()).unwrap();
            mask.check(&grid).unwrap_or_else(|e| panic!("{name}: {e}"));
            check_rows(&grid, name, &mask);
            for (size, b, h) in [(1, 0, 0), (4, 1, 1), (16, 0, 1), (64, 1, 0)] {
                for i0 in (0..t).step_by(size) {
                    for j0 in (0..s).step_by(size) {
                        let (queries, keys) = (i0..(i0 + size).min(t), j0..(j0 + size).min(s));
                        check_block(&grid, name, &mask, ScoreBlock { b, h, queries, keys });
                    }
                }
            }
        }
    }
}

fn check_rows(grid: &Grid, name: &str, mask: &Mask) {
    for (b, i) in (0..grid.dims.b).flat_map(|b| (0..grid.dims.t).map(move |i| (b, i))) {
        let truth: Vec<u32> =
            (0..grid.dims.s).filter(|j| mask.allows(grid, b, 0, i, *j)).map(|j| j as u32).collect();
        if let Some((low, high)) = mask.range(grid, b, i) {
            let range: Vec<u32> = (0..grid.dims.s as i64)
                .filter(|j| (low..high).contains(j))
                .map(|j| j as u32)
                .collect();
            assert_eq!(range, truth, "{name}: range of query {i}");
        }
        let mut keys = vec![];
        if mask.list(grid, b, i, &mut keys) {
            assert_eq!(keys, truth, "{name}: list of query {i}");
        }
    }
}

fn check_block(grid: &Grid, name: &str, mask: &Mask, block: ScoreBlock) {
    let lanes = block.queries.len() + 1;
    let mut cells = vec![0; block.keys.len() * lanes];
    mask.cells(grid, &block, lanes, &mut cells);
    let mut allowed = 0;
    for (jj, j) in block.keys.clone().enumerate() {
        for (ii, i) in block.queries.clone().enumerate() {
            let truth = mask.allows(grid, block.b, block.h, i, j);
            assert_eq!(cells[jj * lanes + ii], u8::from(truth), "{name}: cell {i}, {j}");
            allowed += usize::from(truth);
        }
    }
    match mask.cover(grid, &block) {
        Cover::Empty => assert_eq!(allowed, 0, "{name}: {block:?} said to be empty"),
        Cover::Full => {
            assert_eq!(
                allowed,
                block.keys.len() * block.queries.len(),
                "{name}: {block:?} said full"
            )
        }
        Cover::Partial => {}
    }
}

#[test]
fn bad_masks_are_named() {
    let dims = Dims { b: 2, h: 2, hk: 2, t: 3, s: 4, d: 4, dk: 4, e: 4 };
    let grid = Grid::new(dims, Positions::End).unwrap();
    let rows: &[(Mask, &str)] = &[
        (lengths(&[1]), "lengths: got 1, need one per batch row: B = 2"),
        (lengths(&[1, 5]), "lengths[1]: got 5, need 0 to S = 4"),
        (lengths(&[1, -1]), "lengths[1]: got -1, need 0 to S = 4"),
        (expanded(1, 1, 0), "expanded: got stride 0, need at least 1"),
        (around(&[0.0; 5], 1), "around: got 5 centres, need B·T = 2·3"),
        (around(&[f32::NAN; 6], 1), "around: centres[0] is NaN, need a number"),
        (global_tokens(&[4]), "global_tokens: got index 4, need below S = 4"),
        (global_tokens(&[1, 1]), "global_tokens: an index is given twice"),
        (prefix(5), "prefix: got n = 5, need at most S = 4"),
        (segments(&[0; 7]), "segments: got 7 ids, need S = 4 or B·S = 2·4"),
        (permutation(&[0, 0, 1, 2], true), "permutation: position 3 is not in the order of 0..4"),
        (
            permutation(&[0, 1, 2, 3, 4], true),
            "permutation: got an order of 5 positions, need at most S = 4",
        ),
        (
            permutations(&[[0, 1], [1, 0], [0, 1]], true),
            "permutation: got 3 orders, need one, or one per batch row: B = 2",
        ),
        (
            permutations(&[vec![0, 1], vec![0]], true),
            "permutation: got orders of 2 and of 1 positions, need one length",
        ),
        (
            permutations(&[[0, 1], [1, 1]], true),
            "permutation: position 0 is not in the order of 0..2",
        ),
        (edges(&[0, 1], &[0]), "edges: got indptr of 2 elements, need T + 1 = 4"),
        (edges(&[0, 1, 1, 2], &[0]), "edges: indptr runs from 0 to 2, need 0 to the 1 indices"),
        (edges(&[0, 2, 1, 2], &[0, 1]), "edges: indptr decreases after row 1, need it ascending"),
        (edges(&[0, 1, 1, 2], &[0, 4]), "edges: row 2 has key 4, need 0 to S − 1 = 3"),
        (
            edges(&[0, 2, 2, 2], &[1, 0]),
            "edges: the indices of row 0 are not ascending and distinct",
        ),
        (dense(vec![true; 5]), "dense mask: got 5 cells, need [T,S] = [3,4]"),
        (dense_per_row(vec![true; 5]), "dense mask: got 5 cells, need [B,T,S] = [2,3,4]"),
        (dense_per_head(vec![true; 5]), "dense mask: got 5 cells, need [B,H,T,S] = [2,2,3,4]"),
        (causal() & lengths(&[9, 9]), "lengths[0]: got 9, need 0 to S = 4"),
    ];
    for (mask, message) in rows {
        assert_eq!(mask.check(&grid).unwrap_err().0, *message);
    }
}
