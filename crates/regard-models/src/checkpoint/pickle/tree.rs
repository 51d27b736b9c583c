//! The tree that a pickle describes: plain values and the names of classes.
//!
//! A value refers to others by index. However deep a file nests its tuples, and even if a list
//! contains itself, neither reading nor dropping recurses; and a value that is referenced a million
//! times is stored once.

/// Index of a value in the list of all values. A value comes after those that it was made from,
/// but items that are added to a list or a dictionary later may come after it.
pub type ValueIndex = u32;
/// Key and value of a dictionary's entry.
pub type DictEntry = (ValueIndex, ValueIndex);

/// A value of a pickle.
#[derive(Debug)]
pub enum Value<'a> {
    /// `None`.
    Nothing,
    /// A boolean, a float, or bytes of Python 3: no reader needs them.
    Other,
    /// An integer.
    Whole(i64),
    /// A larger integer, little-endian.
    Long(&'a [u8]),
    /// Text, or a string of Python 2 that is UTF-8.
    Text(&'a str),
    /// A string of Python 2 that is not UTF-8.
    Bytes(&'a [u8]),
    /// A tuple, a list or a set.
    Items(Vec<ValueIndex>),
    /// A dictionary.
    Dict(Vec<DictEntry>),
    /// The name of a class or a function. It is never imported.
    Class {
        /// Module from which Python would import it.
        module: &'a str,
        /// Name within the module.
        name: &'a str,
    },
    /// An object that Python would have made.
    Object(Box<Object>),
    /// A persistent id: a reference to something outside the pickle.
    Persistent(ValueIndex),
}

/// Construction of an object: a class, its arguments, and what is set afterwards.
#[derive(Debug)]
pub struct Object {
    /// Whether a function is called, or a class instantiated.
    pub made: Made,
    /// Index of a [`Value::Class`].
    pub class: ValueIndex,
    /// Index of a [`Value::Items`].
    pub arguments: ValueIndex,
    /// Items that are set, if it behaves like a dictionary.
    pub pairs: Vec<DictEntry>,
    /// State for `__setstate__` or the attributes, if set.
    pub state: Option<ValueIndex>,
}

/// Way in which an object is constructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// By a function call.
    Call,
    /// By `__new__`.
    New,
}

/// All values of a pickle.
pub struct Tree<'a> {
    values: Vec<Value<'a>>,
    top: ValueIndex,
}

impl<'a> Tree<'a> {
    pub(super) fn new(values: Vec<Value<'a>>, top: ValueIndex) -> Tree<'a> {
        Tree { values, top }
    }

    /// Index of the top value.
    pub fn top(&self) -> ValueIndex {
        self.top
    }

    /// The value at an index.
    pub fn at(&self, place: ValueIndex) -> &Value<'a> {
        &self.values[place as usize]
    }

    /// Iterates over all values with their indices.
    pub fn values(&self) -> impl Iterator<Item = (ValueIndex, &Value<'a>)> {
        (0..).zip(&self.values)
    }

    /// Returns the text if `place` holds text.
    pub fn text(&self, place: ValueIndex) -> Option<&'a str> {
        match self.at(place) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the bytes if `place` holds text or a string of Python 2.
    pub fn bytes(&self, place: ValueIndex) -> Option<&'a [u8]> {
        match self.at(place) {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the items if `place` holds a tuple, a list or a set.
    pub fn items(&self, place: ValueIndex) -> Option<&[ValueIndex]> {
        match self.at(place) {
            Value::Items(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the object if `place` holds one, with the module and the name of its class.
    pub fn object(&self, place: ValueIndex) -> Option<(&Object, (&'a str, &'a str))> {
        match self.at(place) {
            Value::Object(object) => match self.at(object.class) {
                Value::Class { module, name } => Some((object, (module, name))),
                _ => None,
            },
            _ => None,
        }
    }
}
