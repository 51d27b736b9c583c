//! A pickle as PyTorch writes it: only the names that tensors are made of.

use super::machine::{NOT_UTF8, Steps, read_tree};
use super::shown;
use super::tensor::ElementType;
use super::tree::{DictEntry, Made, Object, Tree, Value, ValueIndex};

/// Most bytes of a storage's key: a number, before PyTorch 1.6 an address.
const LONGEST_KEY: usize = 64;

/// Python names that a checkpoint may use. All of them only hold values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Global {
    /// A dictionary.
    OrderedDict,
    /// A tensor, from a storage, offset, shape and strides.
    Tensor,
    /// A trainable tensor, from a tensor.
    Parameter,
    /// A shape, from a tuple.
    Size,
    /// A device or a memory layout; ignored.
    Place,
    /// A storage with elements of this type.
    Storage(ElementType),
}

impl Global {
    fn named(module: &str, name: &str) -> Option<Global> {
        match (module, name) {
            ("collections", "OrderedDict") => Some(Global::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => Some(Global::Tensor),
            ("torch._utils", "_rebuild_parameter") => Some(Global::Parameter),
            ("torch", "Size") => Some(Global::Size),
            ("torch", "device") | ("torch.serialization", "_get_layout") => Some(Global::Place),
            ("torch" | "torch.storage", name) => {
                name.strip_suffix("Storage").and_then(ElementType::named).map(Global::Storage)
            }
            _ => None,
        }
    }
}

/// A reference to elements stored elsewhere in the file.
#[derive(Clone, Copy, Debug)]
pub struct Storage<'a> {
    /// Element type.
    pub kind: ElementType,
    /// Name of the storage within the file.
    pub key: &'a str,
    /// Number of elements.
    pub count: u64,
}

/// A pickle that was checked: every name in it is known, and every call only makes a plain
/// value.
pub struct Pickled<'a> {
    /// The values of the pickle.
    pub tree: Tree<'a>,
}

impl<'a> Pickled<'a> {
    /// Reads and checks one pickle, and returns it with the bytes that follow.
    pub fn read(bytes: &'a [u8]) -> Result<(Pickled<'a>, &'a [u8]), String> {
        let (tree, rest) = read_tree(bytes)?;
        let pickled = Pickled { tree };
        let mut steps = Steps::default();
        for (place, value) in pickled.tree.values() {
            match value {
                Value::Class { module, name } if Global::named(module, name).is_none() => {
                    return Err(refused(module, name));
                }
                Value::Bytes(_) => return Err(NOT_UTF8.to_string()),
                Value::Object(object) => pickled.check(object, &mut steps)?,
                Value::Persistent(_) if pickled.storage(place).is_none() => {
                    return Err("its pickle has an id that is no storage of PyTorch".to_string());
                }
                _ => {}
            }
        }
        Ok((pickled, rest))
    }

    /// Checks that an object is one of the few that checkpoints contain.
    fn check(&self, object: &Object, steps: &mut Steps) -> Result<(), String> {
        if object.made == Made::New {
            return Err("wants to make an object, which no tensor needs: refused".to_string());
        }
        let first = self.tree.items(object.arguments).and_then(|items| items.first().copied());
        let Some(global) = self.global(object.class) else {
            return Err("wants to call something that is not a function: refused".to_string());
        };
        let fits = match (global, first) {
            (Global::OrderedDict, None) | (Global::Tensor | Global::Place, _) => true,
            (Global::OrderedDict, Some(list)) => self.check_pairs(list, steps).map(|()| true)?,
            (Global::Parameter, Some(tensor)) => self.arguments(tensor, Global::Tensor).is_some(),
            (Global::Size, Some(sizes)) => self.tree.items(sizes).is_some(),
            _ => false,
        };
        if !fits {
            return Err(format!("wants to call {global:?} with unexpected arguments: refused"));
        }
        // A state dict has attributes about versions, which are ignored.
        if global != Global::OrderedDict && (object.state.is_some() || !object.pairs.is_empty()) {
            return Err("wants to change an object, which no tensor needs: refused".to_string());
        }
        Ok(())
    }

    /// Checks that a list holds pairs, as that of an ordered dictionary of Python 2 does. Many
    /// dictionaries may share one list, so each item counts as a step.
    fn check_pairs(&self, list: ValueIndex, steps: &mut Steps) -> Result<(), String> {
        let damaged = "its pickle is damaged: an ordered dictionary of items that are no pairs";
        let items = self.tree.items(list).ok_or(damaged)?;
        steps.count(items.len())?;
        match items.iter().all(|item| self.pair(*item).is_some()) {
            true => Ok(()),
            false => Err(damaged.to_string()),
        }
    }

    fn pair(&self, place: ValueIndex) -> Option<DictEntry> {
        match self.tree.items(place)? {
            [key, value] => Some((*key, *value)),
            _ => None,
        }
    }

    fn global(&self, place: ValueIndex) -> Option<Global> {
        match self.tree.at(place) {
            Value::Class { module, name } => Global::named(module, name),
            _ => None,
        }
    }

    /// Returns the arguments if `place` holds a call of the function `of`.
    fn arguments(&self, place: ValueIndex, of: Global) -> Option<ValueIndex> {
        let (object, (module, name)) = self.tree.object(place)?;
        (Global::named(module, name) == Some(of)).then_some(object.arguments)
    }

    fn first_argument(&self, place: ValueIndex, of: Global) -> Option<ValueIndex> {
        self.tree.items(self.arguments(place, of)?)?.first().copied()
    }

    /// The top value of the pickle.
    pub fn top(&self) -> &Value<'a> {
        self.tree.at(self.tree.top())
    }

    /// Iterates over the pairs if `place` holds a dictionary, ordered or not.
    pub fn pairs(&self, place: ValueIndex) -> Option<impl DoubleEndedIterator<Item = DictEntry>> {
        let (given, set) = match self.tree.at(place) {
            Value::Dict(pairs) => (None, pairs),
            Value::Object(object) => {
                self.arguments(place, Global::OrderedDict)?;
                (self.first_argument(place, Global::OrderedDict), &object.pairs)
            }
            _ => return None,
        };
        let given = given.and_then(|list| self.tree.items(list)).unwrap_or_default();
        Some(given.iter().filter_map(|item| self.pair(*item)).chain(set.iter().copied()))
    }

    /// Returns the value of a dictionary under a name: the last one, as in Python.
    pub fn entry(&self, dict: ValueIndex, name: &str) -> Option<ValueIndex> {
        let mut pairs = self.pairs(dict)?.rev();
        pairs.find(|(key, _)| self.tree.text(*key) == Some(name)).map(|(_, value)| value)
    }

    /// Returns the arguments that describe a tensor if `place` holds one, trainable or not.
    pub fn tensor(&self, place: ValueIndex) -> Option<ValueIndex> {
        let within = self.first_argument(place, Global::Parameter);
        self.arguments(within.unwrap_or(place), Global::Tensor)
    }

    /// Returns the sizes if `place` holds a tuple of them or a shape.
    pub fn sizes(&self, place: ValueIndex) -> Option<&[ValueIndex]> {
        let within = self.first_argument(place, Global::Size);
        self.tree.items(within.unwrap_or(place))
    }

    /// Returns the storage if `place` holds one: `("storage", class, key, device, count)`, before
    /// PyTorch 1.6 with `None` at the end.
    pub fn storage(&self, place: ValueIndex) -> Option<Storage<'a>> {
        let Value::Persistent(parts) = *self.tree.at(place) else { return None };
        let (word, class, key, count) = match *self.tree.items(parts)? {
            [word, class, key, _, count] => (word, class, key, count),
            [word, class, key, _, count, last] => match self.tree.at(last) {
                Value::Nothing => (word, class, key, count),
                _ => return None,
            },
            _ => return None,
        };
        let key = self.tree.text(key).filter(|key| key.len() <= LONGEST_KEY)?;
        match (self.tree.text(word)?, self.global(class)?, self.tree.at(count)) {
            ("storage", Global::Storage(kind), Value::Whole(count @ 0..)) => {
                Some(Storage { kind, key, count: count.unsigned_abs() })
            }
            _ => None,
        }
    }

    /// All storages, in the order in which the pickle mentions them.
    pub fn storages(&self) -> impl Iterator<Item = Storage<'a>> {
        self.tree.values().filter_map(|(place, _)| self.storage(place))
    }
}

/// Error for an unknown name.
fn refused(module: &str, name: &str) -> String {
    let what = format!("{}.{}", shown(module), shown(name));
    if module == "torch" && name.ends_with("Storage") {
        return format!("holds elements of the type {what}, which is not supported");
    }
    format!(
        "wants to run {what}: refused. Weights are numbers and need no code. If the file holds a \
         whole model, save the model's state_dict() instead, best with safetensors. If you do not \
         know who made it, do not load it with PyTorch either"
    )
}
