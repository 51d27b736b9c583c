//! Training of a cross-encoder, which encodes a query and a text together and outputs one relevance
//! logit.

use super::relevance_logit;
use crate::about::About;
use crate::data::Part;
use crate::data::known::{self, DataSet, Format};
use crate::data::ranking::{self, RankingExample};
use crate::data::split::hash;
use crate::data::squad::Article;
use crate::evaluation::{DetailedMarks, Details, EvaluationData, EvaluationSet, Metric, Source};
use crate::metrics::Ranking;
use crate::reader::TextEncoder;
use crate::reader::learn::{Data, EvaluationExamples, Evaluator, Example, Marks, Recipe, TextTask};
use crate::recipe::details::{ShownInput, ShownOutput};
use crate::say;
use crate::text::Tokenizer;
use burn::tensor::{Tensor, TensorData, activation};
use regard_models::Result;
use regard_models::text::Head;
use std::collections::HashSet;
use std::ops::Range;

/// Largest number of queries evaluated on a validation part, those with the smallest hashes: each
/// is encoded with all of its texts, and validation runs often.
const ASKED: usize = 200;
/// Texts per query of an article: the paragraph with the answer, and others of the article.
const CANDIDATES: usize = 10;
/// Irrelevant texts per query of an article in training.
const NEGATIVES: usize = 3;
/// Name of the only label.
const LABEL: &str = "relevant";

/// Training and validation pairs of a query and a text.
pub(crate) struct Pairs {
    labels: Vec<String>,
    train: Vec<Example>,
    valid: Queries,
    about: About,
}

/// Evaluation set: queries, each with its texts.
pub(crate) struct Queries {
    /// Pairs, grouped by query.
    pairs: Vec<Example>,
    /// Relevance of each pair; above 0 is relevant.
    relevance: Vec<f64>,
    /// Number of texts of each query.
    counts: Vec<usize>,
    /// Query and text of each pair, to show them.
    shown: Vec<(String, String)>,
    /// Number of queries left out because none of their texts is relevant.
    without_relevant: usize,
}

fn example(tokenizer: &Tokenizer, longest: usize, pair: &RankingExample) -> Result<Example> {
    let encoding = tokenizer.encode_within(&pair.query, Some(&pair.text), longest)?;
    Ok(Example::new(encoding, vec![i64::from(pair.relevance > 0.0)]))
}

/// Returns the pairs of a part. In question-answering data, the relevant text of a question is its
/// own paragraph; `negatives` other paragraphs of the article are irrelevant.
fn judged(data: &Data, part: Part, negatives: Option<usize>) -> Result<Vec<RankingExample>> {
    let others = negatives.unwrap_or(CANDIDATES - 1);
    let (key, name) = data.named(part);
    match known::named("rerank", key, name)? {
        Some(DataSet { format: Format::Questions(read), .. }) => {
            Ok(read(part)?.iter().flat_map(|article| candidates(article, others)).collect())
        }
        Some(set) => known::unread(set),
        None => {
            let mut read = ranking::read(data.file(part)?)?;
            read.retain(|pair| data.keeps(part, &pair.query));
            Ok(read)
        }
    }
}

/// Pairs each question of an article with its paragraph and `others` further ones, chosen by hash.
fn candidates(article: &Article, others: usize) -> Vec<RankingExample> {
    let mut all = vec![];
    for (at, paragraph) in article.paragraphs.iter().enumerate() {
        for question in &paragraph.questions {
            let mut rest: Vec<usize> = (0..article.paragraphs.len()).filter(|i| *i != at).collect();
            rest.sort_by_key(|i| hash(&format!("{}\t{i}", question.id)));
            let chosen = [at].into_iter().chain(rest.into_iter().take(others));
            all.extend(chosen.map(|i| RankingExample {
                query: question.text.trim().to_string(),
                text: article.paragraphs[i].context.clone(),
                relevance: f64::from(u8::from(i == at)),
                // Two articles may ask the same question of different paragraphs.
                query_id: Some(question.id.clone()),
            }));
        }
    }
    all
}

/// Returns a key for duplicate queries: letters and digits in lower case.
fn key(query: &str) -> String {
    let letters = query.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Groups pairs by query, in order of first appearance.
fn by_query(pairs: &[RankingExample]) -> Vec<Vec<&RankingExample>> {
    let mut places = std::collections::HashMap::new();
    let mut all: Vec<Vec<&RankingExample>> = vec![];
    for pair in pairs {
        let place = *places
            .entry(pair.query_id.as_ref().unwrap_or(&pair.query).as_str())
            .or_insert_with(|| {
                all.push(vec![]);
                all.len() - 1
            });
        all[place].push(pair);
    }
    all
}

impl Queries {
    fn new(
        tokenizer: &Tokenizer,
        longest: usize,
        pairs: &[RankingExample],
        most: Option<usize>,
    ) -> Result<Queries> {
        let mut groups = by_query(pairs);
        let all = groups.len();
        groups.retain(|group| group.iter().any(|pair| pair.relevance > 0.0));
        let without_relevant = all - groups.len();
        if let Some(most) = most {
            groups.sort_by_key(|group| hash(&group[0].query));
            groups.truncate(most);
        }
        let counts = groups.iter().map(Vec::len).collect();
        let pairs: Vec<&RankingExample> = groups.into_iter().flatten().collect();
        let relevance = pairs.iter().map(|pair| pair.relevance).collect();
        let shown = pairs.iter().map(|pair| (pair.query.clone(), pair.text.clone())).collect();
        let encode = |pair: &&RankingExample| example(tokenizer, longest, pair);
        let pairs = pairs.iter().map(encode).collect::<Result<_>>()?;
        Ok(Queries { pairs, relevance, counts, shown, without_relevant })
    }

    /// Returns the relevance logits of all pairs.
    fn scores(&self, exam: &Evaluator) -> Result<Vec<f64>> {
        let logit = |rows: Vec<Vec<f32>>| relevance_logit(&rows.concat());
        exam.logits(&self.pairs)?.into_iter().map(logit).collect()
    }

    /// Returns the pairs of each query.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let mut from = 0;
        self.counts.iter().map(move |count| {
            from += count;
            from - count..from
        })
    }

    fn marks(&self, scores: &[f64]) -> Vec<Metric> {
        let query = |here: Range<usize>| (&scores[here.clone()], &self.relevance[here]);
        let ranking = Ranking::new(self.ranges().map(query));
        let mark = |name, value: f64, unit| Metric { name, value: 100.0 * value, unit };
        vec![
            mark("mrr", ranking.mrr, "% (MRR@10)"),
            mark("ndcg", ranking.ndcg, "% (NDCG@10)"),
            mark("first", ranking.first, "% of queries with a relevant text first"),
        ]
    }
}

impl TextTask for Pairs {
    const HEAD: Head = Head::Sequence;
    const DECIDES: &'static str = "valid_mrr";
    const COUNTED: &'static str = "pairs";
    type EvaluationExamples = Queries;

    fn read(recipe: &Recipe) -> Result<(Tokenizer, Pairs)> {
        let mut train = judged(&recipe.data, Part::Train, Some(NEGATIVES))?;
        let held_out = judged(&recipe.data, Part::Valid, None)?;
        // Queries of the validation and test parts are removed from the training part.
        let mut asked: HashSet<String> = held_out.iter().map(|pair| key(&pair.query)).collect();
        if recipe.data.has_test(recipe.data.set_of(Part::Test)) {
            let test = judged(&recipe.data, Part::Test, None)?;
            asked.extend(test.iter().map(|pair| key(&pair.query)));
        }
        let all = train.len();
        train.retain(|pair| !asked.contains(&key(&pair.query)));
        let without = match all - train.len() {
            0 => String::new(),
            n => format!(", {} left out because their queries are held out", say::many(n, "text")),
        };
        let texts = train.iter().flat_map(|pair| [pair.query.as_str(), pair.text.as_str()]);
        let tokenizer = recipe.tokenizer(texts)?;
        let longest = recipe.data.max_tokens;
        let mut about = About::default();
        let mut tell = |part: Part, pairs: &[RankingExample], more: &str| {
            let relevant = pairs.iter().filter(|pair| pair.relevance > 0.0).count();
            let what = format!(
                "{} with {}, {relevant} relevant{more}",
                say::many(by_query(pairs).len(), "query"),
                say::many(pairs.len(), "text")
            );
            about.part(part.name(), recipe.data.source(part), what);
        };
        tell(Part::Train, &train, &without);
        let valid = Queries::new(&tokenizer, longest, &held_out, Some(ASKED))?;
        tell(Part::Valid, &held_out, &format!(", {} evaluated", valid.asked()));
        if recipe.data.has_test(recipe.data.set_of(Part::Test)) {
            about.part("test", recipe.data.source(Part::Test), "for regard eval");
        }
        let encode = |pair: &RankingExample| example(&tokenizer, longest, pair);
        let train = train.iter().map(encode).collect::<Result<_>>()?;
        Ok((tokenizer, Pairs { labels: vec![LABEL.into()], train, valid, about }))
    }

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn examples(&self) -> &[Example] {
        &self.train
    }

    fn valid(&self) -> &Queries {
        &self.valid
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    /// Computes the binary cross-entropy of the logit: `softplus(x) − y·x`.
    fn cost(&self, logits: Tensor<2>, batch: &[&Example], smoothing: f32) -> Tensor<1> {
        let wanted =
            |example: &&Example| example.wanted[0] as f32 * (1.0 - smoothing) + 0.5 * smoothing;
        let wanted: Vec<f32> = batch.iter().map(wanted).collect();
        let wanted = TensorData::new(wanted, [batch.len(), 1]);
        let wanted = Tensor::<2>::from_data(wanted, &logits.device());
        (activation::softplus(logits.clone(), 1.0) - wanted * logits).mean()
    }

    fn paper(
        recipe: &Recipe,
        on: &EvaluationData,
        reader: &TextEncoder,
    ) -> Result<(Queries, EvaluationSet)> {
        let data = recipe.data.on(on);
        let source = on.decide(data.set_of(Part::Test), |set| data.has_test(set))?;
        let pairs = match source {
            Source::File(path) => ranking::read(path)?,
            Source::Set(_, part) => judged(&data, part, None)?,
        };
        let longest = recipe.data.max_tokens.min(reader.longest());
        // A validation part is limited to as many queries as during training.
        let most = (source.part() == Some(Part::Valid)).then_some(ASKED);
        let paper = Queries::new(reader.tokenizer(), longest, &pairs, most)?;
        let note = match paper.without_relevant {
            0 => None,
            1 => Some("1 query excluded: no text is relevant to it".to_string()),
            n => Some(format!("{n} queries excluded: no text is relevant to them")),
        };
        let sheet = EvaluationSet { note, ..EvaluationSet::new(&source, paper.asked(), "queries") };
        Ok((paper, sheet))
    }
}

impl EvaluationExamples for Queries {
    fn asked(&self) -> usize {
        self.counts.len()
    }

    fn mark(&self, exam: &Evaluator) -> Result<Marks> {
        Ok((self.marks(&self.scores(exam)?), None))
    }

    fn mark_in_detail(&self, exam: &Evaluator) -> Result<DetailedMarks> {
        let scores = self.scores(exam)?;
        let ranges: Vec<Range<usize>> = self.ranges().collect();
        let one = |here: &Range<usize>| {
            Ranking::new([(&scores[here.clone()], &self.relevance[here.clone()])]).mrr
        };
        let ranks: Vec<f64> = ranges.iter().map(one).collect();
        let show = |at: usize| {
            let text = |at: Option<usize>| at.map_or(String::new(), |at| self.shown[at].1.clone());
            let best = |such: &dyn Fn(usize) -> bool| {
                let some = ranges[at].clone().filter(|at| such(*at));
                text(some.max_by(|a, b| scores[*a].total_cmp(&scores[*b])))
            };
            ShownOutput {
                input: ShownInput { number: None, text: self.shown[ranges[at].start].0.clone() },
                reference: best(&|at| self.relevance[at] > 0.0),
                hypothesis: best(&|at| self.relevance[at] <= 0.0),
            }
        };
        let by = "reciprocal rank of the first relevant text";
        Ok((self.marks(&scores), Some(Details::of_texts(by, 1.0, &ranks, show))))
    }
}
