//! Attention of single queries to pages of a KV cache.

use super::super::pages::{KeyOrValue, Page, PageData, PageShape};
use super::{Cell, MOST_LANES, Run, WORTH};
use crate::pool::{Parts, parallel_ranges};
use crate::scratch::Scratch;
use crate::simd::{Isa, dispatch_on, isa};
use crate::storage::Element;
use crate::view::{Error, bail};
use std::ops::Range;

/// A query of all heads, with the pages of its sequence.
#[derive(Clone, Debug)]
pub struct PagedQuery<'a> {
    /// `[H·D]`
    pub q: &'a [f32],
    /// Pages, the first of which holds position 0 of `keys`.
    pub pages: &'a [&'a Page],
    /// Positions that the query attends to, counted from the first page.
    pub keys: Range<usize>,
}

/// Options of [`decode_pages`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PagedOptions {
    /// `H`, the number of query heads.
    pub heads: usize,
    /// Scale of the scores; `None` for `1/√D`.
    pub scale: Option<f32>,
    /// Soft limit of the scores, `cap · tanh(s / cap)`.
    pub cap: Option<f32>,
}

/// Computes dot-product attention with softmax for queries of any sequences. The result of a query
/// depends on its own keys alone, and not on the number of queries or threads.
///
/// # Shapes
/// `out: [N, H·D]`
///
/// # Errors
/// If sizes do not match, or a query attends to positions that its pages do not have.
pub fn decode_pages(
    queries: &[PagedQuery],
    options: PagedOptions,
    out: &mut [f32],
) -> Result<(), Error> {
    decode_pages_on(isa(), queries, options, out)
}

pub(super) fn decode_pages_on(
    isa: Isa,
    queries: &[PagedQuery],
    options: PagedOptions,
    out: &mut [f32],
) -> Result<(), Error> {
    let Some(shape) = queries.iter().find_map(|x| x.pages.first()).map(|page| page.shape()) else {
        bail!("decode_pages: no query has a page");
    };
    let (heads, PageShape { heads: few, width }) = (options.heads, shape);
    if few == 0 || !heads.is_multiple_of(few) || out.len() != queries.len() * heads * width {
        let (got, n) = (out.len(), queries.len());
        bail!("decode_pages: got {got} floats for {n} queries of {heads} heads, {few} of keys");
    }
    for PagedQuery { q, pages, keys } in queries {
        let have = pages.len() * Page::POSITIONS;
        if q.len() != heads * width || keys.start > keys.end || keys.end > have {
            bail!("decode_pages: got a query of {} and keys {keys:?} of {have}", q.len());
        }
        if pages.iter().any(|page| page.shape() != shape) {
            bail!("decode_pages: pages have different sizes");
        }
    }
    let scale = options.scale.unwrap_or(1.0 / (width as f32).sqrt());
    let longest = queries.iter().map(|x| x.keys.len()).max().unwrap_or(0);
    let parts = Parts::new(out);
    let work = (longest * 2 * width).max(1);
    parallel_ranges(queries.len() * heads, (WORTH / work).max(1), &|from, to| {
        let mut weights = Scratch::new(longest.next_multiple_of(MOST_LANES));
        for cell in from..to {
            let (row, head) = (cell / heads, cell % heads);
            // SAFETY: each cell is one task's, and has its own part of the result.
            let out = unsafe { parts.part(cell * width, width) };
            let query = &queries[row];
            let head = Head {
                q: &query.q[head * width..(head + 1) * width],
                pages: query.pages,
                keys: query.keys.clone(),
                head: head / (heads / few),
                scale,
                cap: options.cap,
            };
            match query.pages.first().map(|page| page.data()) {
                Some(PageData::F32(_)) => head.attend::<f32>(isa, &mut weights, out),
                Some(PageData::F16(_)) => {
                    head.attend::<crate::storage::F16>(isa, &mut weights, out)
                }
                Some(PageData::Int8(..)) => head.attend::<i8>(isa, &mut weights, out),
                None => out.fill(0.0),
            }
        }
    });
    Ok(())
}

/// One query of one head, and its pages.
struct Head<'a> {
    q: &'a [f32],
    pages: &'a [&'a Page],
    keys: Range<usize>,
    /// Key-value head.
    head: usize,
    scale: f32,
    cap: Option<f32>,
}

/// Element of a page.
trait Cached: Element {
    /// The elements of a page, and the scales of its rows if it has any.
    fn of(page: &Page) -> Option<(&[Self], Option<&[f32]>)>;
}

impl Cached for f32 {
    fn of(page: &Page) -> Option<(&[f32], Option<&[f32]>)> {
        match page.data() {
            PageData::F32(data) => Some((data, None)),
            _ => None,
        }
    }
}

impl Cached for crate::storage::F16 {
    fn of(page: &Page) -> Option<(&[Self], Option<&[f32]>)> {
        match page.data() {
            PageData::F16(data) => Some((data, None)),
            _ => None,
        }
    }
}

impl Cached for i8 {
    fn of(page: &Page) -> Option<(&[i8], Option<&[f32]>)> {
        match page.data() {
            PageData::Int8(data, scales) => Some((data, Some(scales))),
            _ => None,
        }
    }
}

impl Head<'_> {
    fn attend<E: Cached>(&self, isa: Isa, weights: &mut [f32], out: &mut [f32]) {
        let width = self.q.len();
        let mut runs = Vec::with_capacity(self.pages.len());
        let first = self.keys.start / Page::POSITIONS;
        for (number, page) in self.pages.iter().enumerate().skip(first) {
            let start = number * Page::POSITIONS;
            if start >= self.keys.end {
                break;
            }
            let (data, scales) = E::of(page).expect("the pages of a sequence have one type");
            let from = self.keys.start.saturating_sub(start);
            let keys = (self.keys.end - start).min(Page::POSITIONS) - from;
            let rows = [KeyOrValue::Key, KeyOrValue::Value].map(|x| Page::row(self.head, x, from));
            let [k, v] = rows.map(|row| (data[row * width..].as_ptr(), width as isize));
            let scales = scales.map(|scales| rows.map(|row| scales[row..row + keys].as_ptr()));
            runs.push(Run { k, v, scales, keys });
        }
        let cell = Cell {
            q: self.q.as_ptr(),
            runs: &runs,
            out: out.as_mut_ptr(),
            widths: [width, width],
            scale: self.scale,
            cap: self.cap,
            weights,
            keys: self.keys.len(),
        };
        dispatch_on(isa, cell);
    }
}
