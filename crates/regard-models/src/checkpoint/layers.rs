//! Binds the tensors of each kind of layer, with PyTorch's names and layouts.

use super::Array;
use super::arrays::Columns;
use super::bind::{Binder, Outputs, Way, fits, numbers};
use super::quantized::stacked;
use regard_attention::layers::{
    Convolution, Embedding, GraphAttention, ImageConvolution, Linear, Norm, Pooling, Recurrent,
    Weight,
};
use regard_attention::ops::StoredMatrix;

impl Binder<'_> {
    /// Binds a linear layer: `name.weight [O, I]`, as in PyTorch, and `name.bias`.
    pub fn linear(&mut self, name: &str, layer: &mut Linear) {
        self.packed(&[name], layer);
    }

    /// Binds a linear layer whose weight is `[I, O]` in the file too, as in GPT-2.
    pub fn linear_by_inputs(&mut self, name: &str, layer: &mut Linear) {
        let (weight, [_, outputs]) = (format!("{name}.weight"), layer.weight.dims());
        self.visit_part(&weight, &mut layer.weight, 0..outputs, true);
        self.weight(&weight, &mut layer.weight);
        if let Some(bias) = &mut layer.bias {
            self.tensor(&format!("{name}.bias"), bias);
        }
    }

    /// Binds several linear layers of equal width that are one in memory: queries, keys and values.
    pub fn packed(&mut self, names: &[&str], layer: &mut Linear) {
        let [_, wide] = layer.weight.dims();
        self.packed_shares(names, &vec![wide / names.len(); names.len()], layer);
    }

    /// Binds linear layers of these widths that are one in memory: with grouped heads, keys and
    /// values are narrower than queries.
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
        if let Way::Quantize(_) = self.way {
            let name = format!("{}.weight", names[0]);
            return self.quantize_weight(&name, &mut layer.weight, Outputs::Columns);
        }
        if let Way::Visit(_) = self.way {
            for (part, name) in names.iter().enumerate() {
                let name = format!("{name}.weight");
                self.visit_part(&name, &mut layer.weight, columns(part), false);
            }
            return;
        }
        if let Way::Write(_) = self.way {
            let by_outputs = layer.weight.as_stored().map(|stored| stored.transpose());
            let stored = |part| by_outputs.as_ref().and_then(|stored| stored.rows(columns(part)));
            let quantized = layer.weight.as_quantized().map(|weight| weight.transpose());
            let copied = |part| quantized.is_none() && stored(part).is_none();
            let weight = (0..names.len()).any(copied);
            let weight = weight.then(|| numbers(layer.weight.val()));
            let bias = layer.bias.as_ref().map(|bias| numbers(bias.val()));
            for (part, name) in names.iter().enumerate() {
                let (weight_name, shape) = (format!("{name}.weight"), [widths[part], inputs]);
                let array = match &quantized {
                    Some(whole) => {
                        Some(Array::of_quantized(shape.to_vec(), whole.part(columns(part))))
                    }
                    None => stored(part).map(|rows| Array::of_rows(shape.to_vec(), rows)),
                };
                match (array, &weight) {
                    (None, Some(weight)) => {
                        let turned =
                            columns(part).flat_map(|o| (0..inputs).map(move |i| i * wide + o));
                        self.put(&weight_name, &shape, turned.map(|at| weight[at]).collect());
                    }
                    (Some(array), _) => self.put_array(&weight_name, array),
                    (None, None) => unreachable!("a part is either stored or copied"),
                }
                if let Some(bias) = &bias {
                    let bias = bias[columns(part)].to_vec();
                    self.put(&format!("{name}.bias"), &[widths[part]], bias);
                }
            }
            return;
        }
        let weights: Vec<Option<Array>> = names
            .iter()
            .zip(widths)
            .map(|(name, width)| self.take_array(&format!("{name}.weight"), &[*width, inputs]))
            .collect();
        let quantized: Option<Vec<_>> =
            weights.iter().map(|array| array.as_ref()?.as_quantized()).collect();
        let quantized = quantized.filter(|_| self.can_store()).and_then(|parts| stacked(&parts));
        if let Some(quantized) = quantized.filter(|matrix| matrix.dims() == [wide, inputs]) {
            layer.weight = Weight::quantized(quantized.transpose());
        } else if self.stores() && weights.iter().all(Option::is_some) {
            let rows = weights.into_iter().flatten().zip(widths);
            let rows = rows.filter_map(|(array, width)| array.into_rows(*width));
            let matrix = fits(StoredMatrix::new(rows.collect(), inputs));
            layer.weight = Weight::stored(matrix.transpose());
        } else {
            // Missing parts keep their initial values. Nothing is allocated before a part is
            // found: until then the size is merely a number in a configuration.
            let found = weights.iter().flatten().count();
            if found > 0 {
                let mut whole = match found == names.len() {
                    true => vec![0.0; inputs * wide],
                    false => numbers(layer.weight.val()),
                };
                for (part, array) in weights.into_iter().enumerate() {
                    let first = columns(part).start;
                    array.iter().for_each(|array| {
                        array.transpose_into(inputs, &mut whole, Columns { first, of: wide });
                    });
                }
                self.fill_weight(&mut layer.weight, whole);
            }
        }
        self.quantize_weight(names[0], &mut layer.weight, Outputs::Columns);
        let Some(param) = &mut layer.bias else { return };
        let mut whole = None;
        for (part, name) in names.iter().enumerate() {
            if let Some(row) = self.take(&format!("{name}.bias"), &[widths[part]]) {
                let whole = whole.get_or_insert_with(|| numbers(param.val()));
                whole[columns(part)].copy_from_slice(&row);
            }
        }
        if let Some(whole) = whole {
            self.fill(param, whole);
        }
    }

    /// Binds a norm: `name.weight` and `name.bias`.
    pub fn norm(&mut self, name: &str, norm: &mut Norm) {
        self.at(name, |b| {
            b.tensor("weight", &mut norm.gamma);
            if let Some(beta) = &mut norm.beta {
                b.tensor("bias", beta);
            }
        });
    }

    /// Binds a norm, if there is one.
    pub fn optional_norm(&mut self, name: &str, norm: &mut Option<Norm>) {
        if let Some(norm) = norm {
            self.norm(name, norm);
        }
    }

    /// Binds an embedding table: `name.weight`.
    pub fn embedding(&mut self, name: &str, embedding: &mut Embedding) {
        self.table(&format!("{name}.weight"), &mut embedding.table);
    }

    /// Binds convolutions: `name.0.weight [O, I, width]`, as in PyTorch, and `name.0.bias`.
    pub fn convolutions(&mut self, name: &str, layers: &mut [Convolution]) {
        for (i, layer) in layers.iter_mut().enumerate() {
            self.at(&format!("{name}.{i}"), |b| b.convolution(layer));
        }
    }

    fn convolution(&mut self, layer: &mut Convolution) {
        self.windows(&[layer.width], &mut layer.linear);
    }

    /// Binds a convolution over images: `name.weight [O, I, rows, columns]`, as in PyTorch, and
    /// `name.bias`.
    pub fn image_convolution(&mut self, name: &str, layer: &mut ImageConvolution) {
        self.at(name, |b| b.windows(&layer.windows.size, &mut layer.linear));
    }

    /// Binds a convolution's weight: position-major in memory (`[positions·I, O]`),
    /// channel-major in the file (`[O, I, positions]`).
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
            self.fill_weight(&mut layer.weight, weight);
        }
        if let Some(bias) = &mut layer.bias {
            self.tensor("bias", bias);
        }
    }

    /// Binds the parameters of attention pooling: `name.key.weight`, `name.query`, `name.v`.
    pub fn pooling(&mut self, name: &str, pooling: &mut Pooling) {
        if let Some(attention) = &mut pooling.attention {
            self.at(name, |b| {
                b.linear("key", &mut attention.key);
                b.tensor("query", &mut attention.query);
                b.tensor("v", &mut attention.v);
            });
        }
    }

    /// Binds graph attention, with PyTorch Geometric's names.
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

    /// Binds recurrent layers, with PyTorch's names: `name.weight_ih_l0`,
    /// `name.weight_ih_l0_reverse`.
    pub fn recurrent(&mut self, name: &str, layers: &mut Recurrent) {
        self.at(name, |b| {
            for (i, layer) in layers.layers.iter_mut().enumerate() {
                for (direction, weights) in ["", "_reverse"].iter().zip(&mut layer.directions) {
                    let end = format!("l{i}{direction}");
                    b.weight_by_outputs(&format!("weight_ih_{end}"), &mut weights.weight_ih);
                    b.weight_by_outputs(&format!("weight_hh_{end}"), &mut weights.weight_hh);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Arrays;
    use burn::tensor::{Device, Tensor};
    use regard_attention::layers::SelfAttentionConfig;
    use regard_attention::{Heads, Init};

    /// Queries, keys and values of unequal widths go into one projection and come out again.
    #[test]
    fn grouped_heads_are_filled() {
        let (names, widths, device) = (["q", "k", "v"], [8, 4, 4], Device::flex());
        let array = |shape: &[usize], from: usize| {
            let numbers = (0..shape.iter().product()).map(|i: usize| (from + i) as f32);
            Array::new(shape.to_vec(), numbers.collect())
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
        for stored in [false, true] {
            let mut qkv = config.init(&mut Init::new(1, &device)).qkv;
            let mut left = file.clone();
            let mut binder = Binder::read(&mut left, &device);
            if let Way::Read { stored: way, .. } = &mut binder.way {
                *way = stored;
            }
            binder.packed_shares(&names, &widths, &mut qkv);
            assert!(binder.problems().is_empty() && left.is_empty());
            assert_eq!(qkv.weight.as_stored().is_some(), stored);
            // The first key follows the last query, in columns.
            let one = [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]];
            let row = numbers(qkv.forward(Tensor::<2>::from_floats(one, &device)));
            assert_eq!(row[7..9], [56.0 + 7.0, 100.0 + 1000.0]);
            let mut again = Arrays::new();
            Binder::write(&mut again).packed_shares(&names, &widths, &mut qkv);
            assert_eq!(again, file);
        }
    }
}
