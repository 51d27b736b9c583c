//! Dense mask, given cell by cell.

use super::*;

pub(super) const VARIANT: Variant = Variant {
    name: "dense",
    params: &[("allowed", "bool [T,S] or [B,H,T,S]")],
    settings: &[],
    formula: "allowed[i, j] (or allowed[b, h, i, j])",
    paper: "–",
};

#[derive(Debug)]
struct Dense {
    allowed: Arc<[bool]>,
    of: Of,
}

/// Axes along which the cells differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    All,
    Row,
    Head,
}

/// Creates a mask from `allowed[i·S + j]`, the same for every batch row and head.
pub fn dense(allowed: impl Into<Arc<[bool]>>) -> Mask {
    Mask::new(Dense { allowed: allowed.into(), of: Of::All })
}

/// Creates a mask from `allowed[(b·T + i)·S + j]`, the same for every head.
pub fn dense_per_row(allowed: impl Into<Arc<[bool]>>) -> Mask {
    Mask::new(Dense { allowed: allowed.into(), of: Of::Row })
}

/// Creates a mask from `allowed[((b·H + h)·T + i)·S + j]`.
pub fn dense_per_head(allowed: impl Into<Arc<[bool]>>) -> Mask {
    Mask::new(Dense { allowed: allowed.into(), of: Of::Head })
}

impl Dense {
    fn row(&self, grid: &Grid, b: usize, h: usize, i: usize) -> &[bool] {
        let (t, s) = (grid.dims.t, grid.dims.s);
        let row = match self.of {
            Of::All => i,
            Of::Row => b * t + i,
            Of::Head => (b * grid.dims.h + h) * t + i,
        };
        &self.allowed[row * s..(row + 1) * s]
    }
}

impl Rule for Dense {
    fn check(&self, grid: &Grid) -> Result<(), Error> {
        let d = grid.dims;
        let (got, shared) = (self.allowed.len(), d.t * d.s);
        let need = match self.of {
            Of::All => shared,
            Of::Row => d.b * shared,
            Of::Head => d.b * d.h * shared,
        };
        if got != need {
            let shape = match self.of {
                Of::All => format!("[T,S] = [{},{}]", d.t, d.s),
                Of::Row => format!("[B,T,S] = [{},{},{}]", d.b, d.t, d.s),
                Of::Head => format!("[B,H,T,S] = [{},{},{},{}]", d.b, d.h, d.t, d.s),
            };
            bail!("dense mask: got {got} cells, need {shape}");
        }
        Ok(())
    }
    fn per_head(&self) -> bool {
        self.of == Of::Head
    }
    fn allows(&self, grid: &Grid, b: usize, h: usize, i: usize, j: usize) -> bool {
        self.row(grid, b, h, i)[j]
    }
    fn cover(&self, grid: &Grid, block: &ScoreBlock) -> Cover {
        let (mut any, mut all) = (false, true);
        for i in block.queries.clone() {
            let row = &self.row(grid, block.b, block.h, i)[block.keys.clone()];
            // Both over the whole row: without early exits the loop vectorises.
            any |= row.iter().fold(false, |x, y| x | y);
            all &= row.iter().fold(true, |x, y| x & y);
            if any && !all {
                return Cover::Partial;
            }
        }
        if all { Cover::Full } else { Cover::Empty }
    }
    fn cells(&self, grid: &Grid, block: &ScoreBlock, lanes: usize, cells: &mut [u8]) {
        for (ii, i) in block.queries.clone().enumerate() {
            let row = &self.row(grid, block.b, block.h, i)[block.keys.clone()];
            for (jj, allowed) in row.iter().enumerate() {
                cells[jj * lanes + ii] = u8::from(*allowed);
            }
        }
    }
}
