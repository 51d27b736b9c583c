//! Batches of stories: sentences of word ids, and a question after each story.

use burn::tensor::{Device, Int, Tensor, TensorData};
use regard_attention::BLOCK;
use regard_attention::mask::{Mask, segments};

/// Stories, each with a question, without padding: the sentences of all stories are rows of one
/// matrix, and a mask separates stories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stories {
    /// Word ids of all sentences, concatenated.
    words: Vec<u32>,
    /// End of each sentence in `words`.
    ends: Vec<usize>,
    /// Number of sentences of each story, including its question, which is the last.
    lengths: Vec<usize>,
}

impl Stories {
    /// Creates an empty batch.
    pub fn new() -> Stories {
        Stories::default()
    }

    /// Adds a story, the oldest sentence first, and its question.
    ///
    /// # Panics
    /// If a sentence or the question has no words.
    pub fn push<S: AsRef<[u32]>>(&mut self, facts: &[S], question: &[u32]) {
        for sentence in facts.iter().map(AsRef::as_ref).chain([question]) {
            assert!(!sentence.is_empty(), "got a sentence with no words");
            self.words.extend_from_slice(sentence);
            self.ends.push(self.words.len());
        }
        self.lengths.push(facts.len() + 1);
    }

    /// Number of stories.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there are no stories.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Number of sentences of each story, including its question.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Number of sentences of all stories, including the questions.
    pub fn sentences(&self) -> usize {
        self.ends.len()
    }

    /// Number of sentences of the longest story, without its question.
    pub fn longest(&self) -> usize {
        self.lengths.iter().max().map_or(0, |n| n - 1)
    }

    /// Number of words of the longest sentence.
    pub fn widest(&self) -> usize {
        (0..self.sentences()).map(|at| self.sentence(at).len()).max().unwrap_or(0)
    }

    /// Word ids of a sentence, by its index over all stories.
    pub fn sentence(&self, at: usize) -> &[u32] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.words[from..self.ends[at]]
    }

    pub(super) fn check(&self, limits: &super::StoryLimits) {
        let super::StoryLimits { sentences, words, .. } = *limits;
        let (longest, widest) = (self.longest(), self.widest());
        assert!(longest <= sentences, "a story of {longest} sentences, need at most {sentences}");
        assert!(widest <= words, "a sentence of {widest} words, need at most {words}");
    }
}

/// Assignment of sentences to rows of a matrix. A story does not cross a multiple of the engine's
/// block size, or starts at one, so that its result is bitwise the same as alone; the few rows
/// that this leaves unused are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// First row of each story.
    firsts: Vec<usize>,
    /// Number of rows, including unused ones.
    pub rows: usize,
}

impl Layout {
    /// Places stories by first fit, the longest first.
    pub fn new(stories: &Stories) -> Layout {
        let lengths = stories.lengths();
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|story| std::cmp::Reverse(lengths[*story]));
        let (mut firsts, mut rows) = (vec![0; lengths.len()], 0);
        // Rows taken in each block, from its start.
        let mut taken: Vec<usize> = vec![];
        for story in order {
            let n = lengths[story];
            let block = match taken.iter().position(|taken| taken + n <= BLOCK) {
                Some(block) => block,
                None => {
                    let block = taken.len();
                    taken.resize(block + n.div_ceil(BLOCK), BLOCK);
                    *taken.last_mut().expect("a story has a sentence") = 0;
                    block
                }
            };
            // A story over several blocks fills all but the last of them.
            firsts[story] = block * BLOCK + if n > BLOCK { 0 } else { taken[block] };
            let last = block + (n - 1) / BLOCK;
            taken[last] += (n - 1) % BLOCK + 1;
            rows = rows.max(firsts[story] + n);
        }
        Layout { firsts, rows }
    }

    /// Row of each sentence, in the order of the stories.
    fn places<'a>(&'a self, stories: &'a Stories) -> impl Iterator<Item = usize> + 'a {
        let all = self.firsts.iter().zip(stories.lengths());
        all.flat_map(|(first, n)| *first..first + n)
    }

    /// Row of each story's question.
    pub fn questions(&self, stories: &Stories) -> Vec<usize> {
        self.firsts.iter().zip(stories.lengths()).map(|(first, n)| first + n - 1).collect()
    }

    /// Story of each row; unused rows have unique numbers.
    pub fn owners(&self, stories: &Stories) -> Vec<i64> {
        let alone = stories.len() as i64..;
        let mut owners: Vec<i64> = alone.take(self.rows).collect();
        for (story, (first, n)) in self.firsts.iter().zip(stories.lengths()).enumerate() {
            owners[*first..first + n].fill(story as i64);
        }
        owners
    }

    /// Mask by which each sentence attends to those of its story.
    pub fn mask(&self, stories: &Stories) -> Mask {
        segments(&self.owners(stories))
    }

    /// `[rows, wide]`: word ids of each row, padded with `pad`.
    pub fn words(
        &self,
        stories: &Stories,
        wide: usize,
        pad: u32,
        device: &Device,
    ) -> Tensor<2, Int> {
        let mut all = vec![i64::from(pad); self.rows * wide];
        for (at, row) in self.places(stories).enumerate() {
            let words = stories.sentence(at).iter().map(|word| i64::from(*word));
            all[row * wide..].iter_mut().zip(words).for_each(|(to, word)| *to = word);
        }
        Tensor::from_data(TensorData::new(all, [self.rows, wide]), device)
    }

    /// `[1, rows]`: age of each sentence, 0 for a question, 1 for the last sentence before it, and
    /// so on. Where `pause` is true for a sentence, all before it are one step older. Ages are
    /// limited to `most`.
    pub fn times(
        &self,
        stories: &Stories,
        most: usize,
        pause: impl Fn(usize) -> bool,
        device: &Device,
    ) -> Tensor<2, Int> {
        let mut times = vec![0; self.rows];
        let mut sentence = stories.sentences();
        for (first, n) in self.firsts.iter().zip(stories.lengths()).rev() {
            let mut time = 0;
            for row in (*first..first + n).rev() {
                sentence -= 1;
                times[row] = time.min(most) as i64;
                time += 1 + usize::from(pause(sentence));
            }
        }
        Tensor::from_data(TensorData::new(times, [1, self.rows]), device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stories(lengths: &[usize]) -> Stories {
        let mut stories = Stories::new();
        for n in lengths {
            let facts: Vec<Vec<u32>> = (1..*n).map(|i| vec![i as u32; 1 + i % 4]).collect();
            stories.push(&facts, &[9, 9]);
        }
        stories
    }

    #[test]
    fn stories_do_not_overlap_nor_cross_blocks() {
        for lengths in [
            vec![1],
            vec![64, 64, 3],
            vec![10, 60, 7, 54, 1, 1],
            vec![130, 3, 65, 64, 63, 200, 1, 128, 62],
            (1..90).collect(),
        ] {
            let stories = stories(&lengths);
            let layout = Layout::new(&stories);
            let owners = layout.owners(&stories);
            for (story, (first, n)) in layout.firsts.iter().zip(&lengths).enumerate() {
                let mine = owners.iter().filter(|owner| **owner == story as i64).count();
                assert_eq!(mine, *n, "{lengths:?}: rows of story {story}");
                let within = first / BLOCK == (first + n - 1) / BLOCK;
                assert!(within || first % BLOCK == 0, "{lengths:?}: story {story} at {first}");
            }
            let (all, rows) = (stories.sentences(), layout.rows);
            assert!(rows <= all + all / 4 + BLOCK, "{lengths:?}: {rows} rows for {all}");
        }
    }

    #[test]
    fn what_was_said_last_is_nearest() {
        let stories = stories(&[4, 2]);
        let layout = Layout::new(&stories);
        let times = |most, pause: fn(usize) -> bool| -> Vec<i64> {
            let times = layout.times(&stories, most, pause, &Device::flex());
            times.into_data().convert::<i64>().try_into_vec().unwrap()
        };
        assert_eq!(times(9, |_| false), [3, 2, 1, 0, 1, 0]);
        assert_eq!(times(2, |_| false), [2, 2, 1, 0, 1, 0]);
        // Sentences before the third one of the first story are one step older.
        assert_eq!(times(9, |sentence| sentence == 2), [4, 3, 1, 0, 1, 0]);
        assert_eq!(layout.questions(&stories), [3, 5]);
        let words = layout.words(&stories, 4, 7, &Device::flex());
        let words: Vec<i64> = words.into_data().convert::<i64>().try_into_vec().unwrap();
        assert_eq!(words[..12], [1, 1, 7, 7, 2, 2, 2, 7, 3, 3, 3, 3]);
        assert_eq!((stories.longest(), stories.widest(), stories.sentence(3)), (3, 4, &[9, 9][..]));
    }

    #[test]
    #[should_panic(expected = "no words")]
    fn a_sentence_has_words() {
        Stories::new().push(&[[]], &[1]);
    }
}
