//! The names of a model's tensors, said once for reading and for writing.

use super::{Array, Arrays};
use crate::sizes::short;
use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use regard_attention::layers::{
    Convolution, Embedding, GraphAttention, ImageConvolution, Linear, Norm, Pooling, Recurrent,
};

/// Goes through a model's tensors by name: puts into them what a checkpoint has, or takes out
/// what a checkpoint should have.
pub struct Binder<'a> {
    way: Way<'a>,
    prefix: String,
    problems: Vec<Problem>,
}

/// What of a checkpoint did not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A tensor that is not there.
    Missing {
        /// Its name.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A tensor of another shape.
    Misshapen {
        /// Its name.
        name: String,
        /// In the checkpoint.
        got: Vec<usize>,
        /// By the configuration.
        wanted: Vec<usize>,
    },
    /// A tensor with a number that is NaN or infinite.
    NotFinite {
        /// Its name.
        name: String,
        /// Which number is the first, row by row.
        at: usize,
        /// The value.
        number: String,
    },
}

impl Problem {
    /// Whether it is a missing tensor of such a name.
    pub fn is_missing(&self, such: &dyn Fn(&str) -> bool) -> bool {
        matches!(self, Problem::Missing { name, .. } if such(name))
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Problem::Missing { name, shape } => {
                write!(f, "{} {shape:?} is missing", short(name, NAME))
            }
            Problem::Misshapen { name, got, wanted } => {
                write!(f, "{} is {got:?}, the configuration says {wanted:?}", short(name, NAME))
            }
            Problem::NotFinite { name, at, number } => {
                write!(f, "{}: number {at} is {number}, {NOT_FINITE}", short(name, NAME))
            }
        }
    }
}

/// How a message about a number that is not finite ends.
pub(crate) const NOT_FINITE: &str = "need finite numbers";

/// Characters of a name in a message, with room for what is said of it; a file may have names of
/// any length.
const NAME: usize = 80;

enum Way<'a> {
    Read { from: &'a mut Arrays, device: Device },
    Compare(&'a Arrays),
    Write(&'a mut Arrays),
}

impl<'a> Binder<'a> {
    /// Takes arrays out of `from` and makes them tensors on a device.
    pub fn read(from: &'a mut Arrays, device: &Device) -> Binder<'a> {
        Binder {
            way: Way::Read { from, device: device.clone() },
            prefix: String::new(),
            problems: vec![],
        }
    }

    /// Compares names and shapes with those of `with`, and changes nothing.
    pub fn compare(with: &'a Arrays) -> Binder<'a> {
        Binder { way: Way::Compare(with), prefix: String::new(), problems: vec![] }
    }

    /// Copies tensors into `to`.
    pub fn write(to: &'a mut Arrays) -> Binder<'a> {
        Binder { way: Way::Write(to), prefix: String::new(), problems: vec![] }
    }

    /// Everything that did not fit: missing names, other shapes.
    pub fn problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Inside a part of the model.
    pub fn at(&mut self, name: &str, part: impl FnOnce(&mut Binder<'a>)) {
        let outside = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        part(self);
        self.prefix.truncate(outside);
    }

    /// Whether a checkpoint that is read has this name. Always true when writing.
    pub fn has(&self, name: &str) -> bool {
        match &self.way {
            Way::Read { from, .. } => from.contains_key(&format!("{}{name}", self.prefix)),
            Way::Compare(with) => with.contains_key(&format!("{}{name}", self.prefix)),
            Way::Write(_) => true,
        }
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Option<Vec<f32>> {
        let name = format!("{}{name}", self.prefix);
        let got = match &self.way {
            Way::Read { from, .. } => from.get(&name).map(|array| &array.shape),
            Way::Compare(with) => with.get(&name).map(|array| &array.shape),
            Way::Write(_) => return None,
        };
        let wanted = shape.to_vec();
        match got {
            Some(got) if *got == wanted => {}
            Some(got) => {
                let got = got.clone();
                // It has a place, if not this shape.
                if let Way::Read { from, .. } = &mut self.way {
                    from.remove(&name);
                }
                self.problems.push(Problem::Misshapen { name, got, wanted });
                return None;
            }
            None => {
                self.problems.push(Problem::Missing { name, shape: wanted });
                return None;
            }
        }
        let Way::Read { from, .. } = &mut self.way else { return None };
        let data = from.remove(&name)?.data;
        // One pass without a branch for each number, which the compiler makes fast.
        if data.iter().fold(true, |fine, x| fine & x.is_finite()) {
            return Some(data);
        }
        let at = data.iter().position(|x| !x.is_finite()).unwrap_or(0);
        self.problems.push(Problem::NotFinite { name, at, number: data[at].to_string() });
        None
    }

    fn put(&mut self, name: &str, shape: &[usize], data: Vec<f32>) {
        let name = format!("{}{name}", self.prefix);
        if let Way::Write(to) = &mut self.way {
            to.insert(name, Array { shape: shape.to_vec(), data });
        }
    }

    fn fill<const D: usize>(&self, param: &mut Param<Tensor<D>>, data: Vec<f32>) {
        if let Way::Read { device, .. } = &self.way {
            let shape: [usize; D] = param.dims();
            *param = Param::from_data(TensorData::new(data, shape), device);
        }
    }

    /// A tensor that stands in the file as it stands in memory.
    pub fn tensor<const D: usize>(&mut self, name: &str, param: &mut Param<Tensor<D>>) {
        let shape = param.dims();
        match &self.way {
            Way::Write(_) => self.put(name, &shape, numbers(param.val())),
            Way::Read { .. } | Way::Compare(_) => {
                if let Some(data) = self.take(name, &shape) {
                    self.fill(param, data);
                }
            }
        }
    }

    /// A tensor that is one axis shorter or longer in the file, or otherwise shaped.
    pub fn shaped<const D: usize>(
        &mut self,
        name: &str,
        shape: &[usize],
        param: &mut Param<Tensor<D>>,
    ) {
        match &self.way {
            Way::Write(_) => self.put(name, shape, numbers(param.val())),
            Way::Read { .. } | Way::Compare(_) => {
                if let Some(data) = self.take(name, shape) {
                    self.fill(param, data);
                }
            }
        }
    }

    /// A linear layer: `name.weight [O, I]`, as PyTorch has it, and `name.bias`.
    pub fn linear(&mut self, name: &str, layer: &mut Linear) {
        self.packed(&[name], layer);
    }

    /// Several linear layers of equal width that are one in memory: queries, keys and values.
    pub fn packed(&mut self, names: &[&str], layer: &mut Linear) {
        let [_, wide] = layer.weight.dims();
        self.packed_shares(names, &vec![wide / names.len(); names.len()], layer);
    }

    /// Linear layers of these widths that are one in memory: with grouped heads, keys and values
    /// are narrower than queries.
    ///
    /// # Panics
    /// If the widths do not add up to that of the layer.
    pub fn packed_shares(&mut self, names: &[&str], widths: &[usize], layer: &mut Linear) {
        let [inputs, wide] = layer.weight.dims();
        assert_eq!(wide, widths.iter().sum::<usize>(), "packed: {names:?} of widths {widths:?}");
        let columns = |part: usize| {
            let from: usize = widths[..part].iter().sum();
            from..from + widths[part]
        };
        if let Way::Write(_) = self.way {
            let weight = numbers(layer.weight.val());
            let bias = layer.bias.as_ref().map(|bias| numbers(bias.val()));
            for (part, name) in names.iter().enumerate() {
                let turned = columns(part).flat_map(|o| (0..inputs).map(move |i| i * wide + o));
                let turned = turned.map(|at| weight[at]).collect();
                self.put(&format!("{name}.weight"), &[widths[part], inputs], turned);
                if let Some(bias) = &bias {
                    let bias = bias[columns(part)].to_vec();
                    self.put(&format!("{name}.bias"), &[widths[part]], bias);
                }
            }
            return;
        }
        // What is missing keeps its first values. The whole is copied only once a part of it is
        // there: until then its size is nothing but what a configuration says.
        let (mut weight, mut bias) = (None, None);
        for (part, name) in names.iter().enumerate() {
            if let Some(rows) = self.take(&format!("{name}.weight"), &[widths[part], inputs]) {
                let weight = weight.get_or_insert_with(|| numbers(layer.weight.val()));
                for (o, row) in columns(part).zip(rows.chunks(inputs.max(1))) {
                    row.iter().enumerate().for_each(|(i, x)| weight[i * wide + o] = *x);
                }
            }
            if let Some(param) = &layer.bias
                && let Some(row) = self.take(&format!("{name}.bias"), &[widths[part]])
            {
                let bias = bias.get_or_insert_with(|| numbers(param.val()));
                bias[columns(part)].copy_from_slice(&row);
            }
        }
        if let Some(weight) = weight {
            self.fill(&mut layer.weight, weight);
        }
        if let (Some(param), Some(bias)) = (&mut layer.bias, bias) {
            self.fill(param, bias);
        }
    }

    /// A norm: `name.weight` and `name.bias`.
    pub fn norm(&mut self, name: &str, norm: &mut Norm) {
        self.at(name, |b| {
            b.tensor("weight", &mut norm.gamma);
            if let Some(beta) = &mut norm.beta {
                b.tensor("bias", beta);
            }
        });
    }

    /// A norm that may not be there.
    pub fn optional_norm(&mut self, name: &str, norm: &mut Option<Norm>) {
        if let Some(norm) = norm {
            self.norm(name, norm);
        }
    }

    /// A table of vectors: `name.weight`.
    pub fn embedding(&mut self, name: &str, embedding: &mut Embedding) {
        self.tensor(&format!("{name}.weight"), &mut embedding.table);
    }

    /// Convolutions: `name.0.weight [O, I, width]`, as PyTorch has it, and `name.0.bias`.
    pub fn convolutions(&mut self, name: &str, layers: &mut [Convolution]) {
        for (i, layer) in layers.iter_mut().enumerate() {
            self.at(&format!("{name}.{i}"), |b| b.convolution(layer));
        }
    }

    fn convolution(&mut self, layer: &mut Convolution) {
        self.windows(&[layer.width], &mut layer.linear);
    }

    /// A convolution over images: `name.weight [O, I, rows, columns]`, as PyTorch has it, and
    /// `name.bias`.
    pub fn image_convolution(&mut self, name: &str, layer: &mut ImageConvolution) {
        self.at(name, |b| b.windows(&layer.windows.size, &mut layer.linear));
    }

    /// In memory the numbers of a window stand place by place, each with its channels; in the file
    /// channel by channel, each with its places.
    fn windows(&mut self, sides: &[usize], layer: &mut Linear) {
        let ([wide, outputs], places) = (layer.weight.dims(), sides.iter().product::<usize>());
        let inputs = wide / places;
        let shape = [&[outputs, inputs], sides].concat();
        let order = (0..outputs).flat_map(|o| (0..inputs).map(move |i| (o, i)));
        let order =
            order.flat_map(|(o, i)| (0..places).map(move |at| (at * inputs + i) * outputs + o));
        if let Way::Write(_) = self.way {
            let weight = numbers(layer.weight.val());
            self.put("weight", &shape, order.map(|at| weight[at]).collect());
        } else if let Some(data) = self.take("weight", &shape) {
            let mut weight = vec![0.0; data.len()];
            order.zip(data).for_each(|(at, x)| weight[at] = x);
            self.fill(&mut layer.weight, weight);
        }
        if let Some(bias) = &mut layer.bias {
            self.tensor("bias", bias);
        }
    }

    /// What is learned of pooling: `name.key.weight`, `name.query`, `name.v`.
    pub fn pooling(&mut self, name: &str, pooling: &mut Pooling) {
        if let Some(attention) = &mut pooling.attention {
            self.at(name, |b| {
                b.linear("key", &mut attention.key);
                b.tensor("query", &mut attention.query);
                b.tensor("v", &mut attention.v);
            });
        }
    }

    /// Attention along edges, with PyTorch Geometric's names.
    pub fn graph_attention(&mut self, layer: &mut GraphAttention) {
        let v2 = layer.target.is_some();
        self.linear(if v2 { "lin_l" } else { "lin" }, &mut layer.source);
        if let Some(target) = &mut layer.target {
            self.linear("lin_r", target);
        }
        if let Some(edge) = &mut layer.edge {
            self.linear("lin_edge", edge);
        }
        let mut vectors = vec![(if v2 { "att" } else { "att_src" }, &mut layer.a_source)];
        vectors.extend(layer.a_target.as_mut().map(|a| ("att_dst", a)));
        vectors.extend(layer.a_edge.as_mut().map(|a| ("att_edge", a)));
        for (name, a) in vectors {
            let [heads, width] = a.dims();
            self.shaped(name, &[1, heads, width], a);
        }
        self.tensor("bias", &mut layer.bias);
    }

    /// Recurrent layers, with PyTorch's names: `name.weight_ih_l0`, `name.weight_ih_l0_reverse`.
    pub fn recurrent(&mut self, name: &str, layers: &mut Recurrent) {
        self.at(name, |b| {
            for (i, layer) in layers.layers.iter_mut().enumerate() {
                for (direction, weights) in ["", "_reverse"].iter().zip(&mut layer.directions) {
                    let end = format!("l{i}{direction}");
                    b.tensor(&format!("weight_ih_{end}"), &mut weights.weight_ih);
                    b.tensor(&format!("weight_hh_{end}"), &mut weights.weight_hh);
                    if let Some(bias) = &mut weights.bias_ih {
                        b.tensor(&format!("bias_ih_{end}"), bias);
                    }
                    if let Some(bias) = &mut weights.bias_hh {
                        b.tensor(&format!("bias_hh_{end}"), bias);
                    }
                }
            }
        });
    }
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().convert::<f32>().try_into_vec().expect("they were just converted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_attention::layers::SelfAttentionConfig;
    use regard_attention::{Heads, Init};

    /// Queries, keys and values of unequal widths go into one projection and come out again.
    #[test]
    fn grouped_heads_are_filled() {
        let (names, widths, device) = (["q", "k", "v"], [8, 4, 4], Device::flex());
        let array = |shape: &[usize], from: usize| Array {
            shape: shape.to_vec(),
            data: (0..shape.iter().product()).map(|i: usize| (from + i) as f32).collect(),
        };
        let mut file = Arrays::new();
        for (i, (name, width)) in names.iter().zip(widths).enumerate() {
            file.insert(format!("{name}.weight"), array(&[width, 8], 100 * i));
            file.insert(format!("{name}.bias"), array(&[width], 1000 * i));
        }
        let config = SelfAttentionConfig {
            heads: Heads { queries: 4, keys: 2 },
            ..SelfAttentionConfig::new(8, 4)
        };
        let mut qkv = config.init(&mut Init::new(1, &device)).qkv;
        let mut left = file.clone();
        let mut binder = Binder::read(&mut left, &device);
        binder.packed_shares(&names, &widths, &mut qkv);
        assert!(binder.problems().is_empty() && left.is_empty());
        // The first key stands behind the last query, in columns.
        let one = Tensor::<2>::from_floats([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], &device);
        let row = numbers(qkv.forward(one));
        assert_eq!(row[7..9], [56.0 + 7.0, 100.0 + 1000.0]);
        let mut again = Arrays::new();
        Binder::write(&mut again).packed_shares(&names, &widths, &mut qkv);
        assert_eq!(again, file);
    }
}
