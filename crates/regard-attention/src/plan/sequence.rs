//! KV cache of one sequence, in pages that sequences share until they differ.

use crate::backend::ok;
pub use regard_kernels::attention::CacheType;
use regard_kernels::attention::{Page, PageShape};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of positions by which a sequence may be shortened although a window has moved on.
const SLACK: usize = Page::POSITIONS;

/// Most pages of a layer that a sequence of `len` tokens holds, fed chunks of at most `chunk`.
pub(super) fn most_pages(window: Option<usize>, len: usize, chunk: usize) -> usize {
    let all = len.div_ceil(Page::POSITIONS);
    let Some(window) = window else { return all };
    // Those of the window, and what is appended before it moves on; it may begin inside of a page.
    let reached = window.saturating_add(SLACK).saturating_add(chunk);
    all.min(reached.div_ceil(Page::POSITIONS) + 1)
}

/// Memory that all caches of a plan take.
#[derive(Clone, Debug, Default)]
pub(super) struct CacheMemory(Arc<AtomicUsize>);

impl CacheMemory {
    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// A page that counts towards the memory of its plan.
#[derive(Debug)]
struct Counted {
    page: Page,
    bytes: usize,
    memory: CacheMemory,
}

impl Counted {
    fn new(page: Page, bytes: usize, memory: &CacheMemory) -> Counted {
        memory.0.fetch_add(bytes, Relaxed);
        Counted { page, bytes, memory: memory.clone() }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Counted {
        Counted::new(self.page.clone(), self.bytes, &self.memory)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Relaxed);
    }
}

/// Pages of one layer.
#[derive(Clone, Debug)]
struct LayerPages {
    pages: VecDeque<Arc<Counted>>,
    /// Number of pages before the first one, which a window has left behind.
    gone: usize,
    /// Number of the last tokens that a token attends to, itself included.
    window: Option<usize>,
}

/// Keys and values of one sequence in all layers. A clone shares all pages; what is appended to it
/// goes into pages of its own.
#[derive(Clone, Debug)]
pub struct SequenceCache {
    layers: Vec<LayerPages>,
    len: usize,
    kind: CacheType,
    shape: PageShape,
    memory: CacheMemory,
}

impl SequenceCache {
    pub(super) fn new(
        windows: &[Option<usize>],
        kind: CacheType,
        shape: PageShape,
        memory: &CacheMemory,
    ) -> SequenceCache {
        let layer = |window: &Option<usize>| LayerPages {
            pages: VecDeque::new(),
            gone: 0,
            window: *window,
        };
        let layers = windows.iter().map(layer).collect();
        SequenceCache { layers, len: 0, kind, shape, memory: memory.clone() }
    }

    /// Returns the number of cached positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is cached.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the positions from `len` on can be removed: those before it that a window still needs
    /// must be there.
    pub fn can_truncate(&self, len: usize) -> bool {
        let has = |layer: &LayerPages| {
            let window = layer.window.unwrap_or(usize::MAX);
            layer.gone * Page::POSITIONS <= (len + 1).saturating_sub(window)
        };
        len <= self.len && self.layers.iter().all(has)
    }

    /// Removes the positions from `len` on.
    ///
    /// # Panics
    /// Unless [`SequenceCache::can_truncate`].
    pub fn truncate(&mut self, len: usize) {
        assert!(self.can_truncate(len), "cache: cannot shorten {} positions to {len}", self.len);
        self.len = len;
        for layer in &mut self.layers {
            let pages = len.div_ceil(Page::POSITIONS).saturating_sub(layer.gone);
            layer.pages.truncate(pages);
        }
    }

    /// Stores the keys of all heads and their values at a position of a layer; `len` does not change
    /// until [`SequenceCache::advance`].
    pub(super) fn write(&mut self, layer: usize, position: usize, both: &[f32]) {
        let (kind, shape) = (self.kind, self.shape);
        let pages = &mut self.layers[layer];
        let number = position / Page::POSITIONS - pages.gone;
        if number == pages.pages.len() {
            let page = Page::new(kind, shape);
            let page = Counted::new(page, kind.page_bytes(shape), &self.memory);
            pages.pages.push_back(Arc::new(page));
        }
        let page = Arc::make_mut(&mut pages.pages[number]);
        ok(page.page.write(position % Page::POSITIONS, both));
    }

    /// Adds `new` positions, which all layers have stored, and gives back pages that no window
    /// reaches any more.
    pub(super) fn advance(&mut self, new: usize) {
        self.len += new;
        for layer in &mut self.layers {
            let Some(window) = layer.window else { continue };
            let needed = self.len.saturating_sub(window.saturating_add(SLACK)) / Page::POSITIONS;
            while layer.gone < needed && !layer.pages.is_empty() {
                layer.pages.pop_front();
                layer.gone += 1;
            }
        }
    }

    /// Returns the pages of a layer, and the position at which the first one begins.
    pub(super) fn pages(&self, layer: usize) -> (impl Iterator<Item = &Page>, usize) {
        let LayerPages { pages, gone, .. } = &self.layers[layer];
        (pages.iter().map(|page| &page.page), gone * Page::POSITIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_leave_with_their_window_however_wide_it_is() {
        let shape = PageShape { heads: 1, width: 2 };
        for (window, gone) in [(None, 0), (Some(usize::MAX), 0), (Some(400), 0), (Some(10), 3)] {
            let memory = CacheMemory::default();
            let mut cache = SequenceCache::new(&[window], CacheType::F32, shape, &memory);
            for position in 0..300 {
                cache.write(0, position, &[1.0; 4]);
                cache.advance(1);
            }
            assert_eq!(cache.pages(0).1, gone * Page::POSITIONS, "{window:?}");
        }
    }
}
