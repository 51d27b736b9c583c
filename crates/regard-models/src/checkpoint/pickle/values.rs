//! What a pickle makes: plain values in one list, which name each other by their places.
//!
//! A value that holds others holds their places, not themselves. However deep a file nests its
//! tuples, and even if a list holds itself, nothing recurses, neither to read it nor to drop it;
//! and a value that is named a million times is there once.

use super::tensor::Kind;

/// Where a value is in the list.
pub type Place = u32;
/// The keys of a dictionary with their values.
pub type Pairs = [(Place, Place)];

/// A value.
#[derive(Debug)]
pub enum Value<'a> {
    /// `None`.
    Nothing,
    /// An integer.
    Whole(i64),
    /// An integer that is larger, the lowest byte first.
    Long(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// A tuple, a list or a set.
    Items(Vec<Place>),
    /// A dictionary.
    Dict(Vec<(Place, Place)>),
    /// One of the names that are known.
    Global(Global),
    /// Numbers that stand elsewhere in the file.
    Storage(Storage<'a>),
    /// A tensor: the arguments that describe it.
    Tensor(Place),
    /// What may be in a file but is not needed: a fraction, a device.
    Other,
}

/// Numbers that stand elsewhere in the file.
#[derive(Clone, Copy, Debug)]
pub struct Storage<'a> {
    /// What they are.
    pub kind: Kind,
    /// Which ones they are.
    pub key: &'a str,
    /// How many there are.
    pub count: u64,
}

/// The names of Python that a pickle may use. None of them does anything but hold values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Global {
    /// A dictionary.
    OrderedDict,
    /// A tensor, from a storage and how to walk through it.
    Tensor,
    /// A tensor that is trained, from a tensor.
    Parameter,
    /// A shape, from a tuple.
    Size,
    /// Where a tensor was, or how it was laid out, which makes no difference here.
    Place,
    /// What a storage holds.
    Storage(Kind),
}

impl Global {
    /// What a name stands for, if it is known.
    pub fn named(module: &str, name: &str) -> Option<Global> {
        match (module, name) {
            ("collections", "OrderedDict") => Some(Global::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => Some(Global::Tensor),
            ("torch._utils", "_rebuild_parameter") => Some(Global::Parameter),
            ("torch", "Size") => Some(Global::Size),
            ("torch", "device") | ("torch.serialization", "_get_layout") => Some(Global::Place),
            ("torch" | "torch.storage", name) => {
                name.strip_suffix("Storage").and_then(Kind::named).map(Global::Storage)
            }
            _ => None,
        }
    }
}

/// All values of a pickle.
pub struct Pickled<'a> {
    values: Vec<Value<'a>>,
    top: Place,
}

impl<'a> Pickled<'a> {
    /// The values that a pickle made, and the one that it is about.
    pub fn new(values: Vec<Value<'a>>, top: Place) -> Pickled<'a> {
        Pickled { values, top }
    }

    /// The value that the pickle is about.
    pub fn top(&self) -> &Value<'a> {
        self.at(self.top)
    }

    /// The value at a place.
    pub fn at(&self, place: Place) -> &Value<'a> {
        &self.values[place as usize]
    }

    /// What a dictionary has under a name: the last one counts, as in Python.
    pub fn entry(&self, pairs: &Pairs, name: &str) -> Option<&Value<'a>> {
        let named = |(key, _): &&(Place, Place)| matches!(self.at(*key), Value::Text(text) if *text == name);
        pairs.iter().rev().find(named).map(|(_, value)| self.at(*value))
    }

    /// All storages, in the order in which the pickle mentions them.
    pub fn storages(&self) -> impl Iterator<Item = &Storage<'a>> {
        self.values.iter().filter_map(|value| match value {
            Value::Storage(storage) => Some(storage),
            _ => None,
        })
    }
}
