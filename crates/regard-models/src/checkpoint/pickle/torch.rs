//! A pickle as PyTorch means it: the names that tensors are made of, and no others.

use super::machine::{NOT_UTF8, Steps, read_tree};
use super::shown;
use super::tensor::Kind;
use super::tree::{Made, Object, Pair, Place, Tree, Value};

/// Storages are numbered, by PyTorch before 1.6 with addresses.
const LONGEST_KEY: usize = 64;

/// The names of Python that a checkpoint may use. None of them does anything but hold values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Global {
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
    /// A storage of numbers of this type.
    Storage(Kind),
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
                name.strip_suffix("Storage").and_then(Kind::named).map(Global::Storage)
            }
            _ => None,
        }
    }
}

/// Numbers that stand elsewhere in the file.
#[derive(Clone, Copy, Debug)]
pub struct Storage<'a> {
    /// Their type.
    pub kind: Kind,
    /// Which ones they are.
    pub key: &'a str,
    /// How many there are.
    pub count: u64,
}

/// A pickle that has been looked through: every name in it is known, and every call is one that
/// makes a plain value.
pub struct Pickled<'a> {
    /// Its values.
    pub tree: Tree<'a>,
}

impl<'a> Pickled<'a> {
    /// Reads one pickle, and gives back what follows it.
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
                    return Err("its pickle refers to what is no storage of PyTorch".to_string());
                }
                _ => {}
            }
        }
        Ok((pickled, rest))
    }

    /// Whether an object is one of the few that checkpoints have.
    fn check(&self, object: &Object, steps: &mut Steps) -> Result<(), String> {
        if object.made == Made::New {
            return Err("wants to make an object, which no tensor needs: refused".to_string());
        }
        let first = self.tree.items(object.arguments).and_then(|items| items.first().copied());
        let Some(global) = self.global(object.class) else {
            return Err("wants to call what is no function: refused".to_string());
        };
        let fits = match (global, first) {
            (Global::OrderedDict, None) | (Global::Tensor | Global::Place, _) => true,
            (Global::OrderedDict, Some(list)) => self.check_pairs(list, steps).map(|()| true)?,
            (Global::Parameter, Some(tensor)) => self.arguments(tensor, Global::Tensor).is_some(),
            (Global::Size, Some(sizes)) => self.tree.items(sizes).is_some(),
            _ => false,
        };
        if !fits {
            return Err(format!("wants to call {global:?} with other arguments: refused"));
        }
        // A state dict has attributes about versions, which are not needed.
        if global != Global::OrderedDict && (object.state.is_some() || !object.pairs.is_empty()) {
            return Err("wants to change an object, which no tensor needs: refused".to_string());
        }
        Ok(())
    }

    /// Whether a list holds pairs, as that of an ordered dictionary of Python 2 does. Many
    /// dictionaries may be made of one list, so that each item of it is a step.
    fn check_pairs(&self, list: Place, steps: &mut Steps) -> Result<(), String> {
        let damaged = "its pickle is damaged: an ordered dictionary of what are no pairs";
        let items = self.tree.items(list).ok_or(damaged)?;
        steps.count(items.len())?;
        match items.iter().all(|item| self.pair(*item).is_some()) {
            true => Ok(()),
            false => Err(damaged.to_string()),
        }
    }

    fn pair(&self, place: Place) -> Option<Pair> {
        match self.tree.items(place)? {
            [key, value] => Some((*key, *value)),
            _ => None,
        }
    }

    fn global(&self, place: Place) -> Option<Global> {
        match self.tree.at(place) {
            Value::Class { module, name } => Global::named(module, name),
            _ => None,
        }
    }

    /// Where the arguments of a call of this function are, if a place holds one.
    fn arguments(&self, place: Place, of: Global) -> Option<Place> {
        let (object, (module, name)) = self.tree.object(place)?;
        (Global::named(module, name) == Some(of)).then_some(object.arguments)
    }

    fn first_argument(&self, place: Place, of: Global) -> Option<Place> {
        self.tree.items(self.arguments(place, of)?)?.first().copied()
    }

    /// The value that the pickle is about.
    pub fn top(&self) -> &Value<'a> {
        self.tree.at(self.tree.top())
    }

    /// The pairs of a dictionary, if a place holds one, ordered or not.
    pub fn pairs(&self, place: Place) -> Option<impl DoubleEndedIterator<Item = Pair>> {
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

    /// Where the value is that a dictionary has under a name: the last one counts, as in Python.
    pub fn entry(&self, dict: Place, name: &str) -> Option<Place> {
        let mut pairs = self.pairs(dict)?.rev();
        pairs.find(|(key, _)| self.tree.text(*key) == Some(name)).map(|(_, value)| value)
    }

    /// Where the arguments are that describe a tensor, if a place holds one, trained or not.
    pub fn tensor(&self, place: Place) -> Option<Place> {
        let within = self.first_argument(place, Global::Parameter);
        self.arguments(within.unwrap_or(place), Global::Tensor)
    }

    /// The places of sizes, if a place holds a tuple of them or a shape.
    pub fn sizes(&self, place: Place) -> Option<&[Place]> {
        let within = self.first_argument(place, Global::Size);
        self.tree.items(within.unwrap_or(place))
    }

    /// The storage at a place, if there is one: `("storage", class, key, device, count)`, before
    /// 1.6 with `None` at the end.
    pub fn storage(&self, place: Place) -> Option<Storage<'a>> {
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

/// The error for a name that is not known.
fn refused(module: &str, name: &str) -> String {
    let what = format!("{}.{}", shown(module), shown(name));
    if module == "torch" && name.ends_with("Storage") {
        return format!("holds numbers of the type {what}, which are not read");
    }
    format!(
        "wants to run {what}: refused. Weights are numbers and need no code. If the file holds a \
         whole model, save the model's state_dict() instead, best with safetensors. If you do not \
         know who made it, do not load it with PyTorch either"
    )
}
