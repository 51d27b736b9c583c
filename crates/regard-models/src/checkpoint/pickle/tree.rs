//! The tree that a pickle describes: plain values and the names of classes.
//!
//! A value that holds others holds their places, not themselves. However deep a file nests its
//! tuples, and even if a list holds itself, nothing recurses, neither to read it nor to drop it;
//! and a value that is named a million times is there once.

/// Where a value is in the list of all. A value comes after those that it was made from, but what
/// is put into a list or a dictionary later may stand behind it.
pub type Place = u32;
/// A key of a dictionary with its value.
pub type Pair = (Place, Place);

/// A value.
#[derive(Debug)]
pub enum Value<'a> {
    /// `None`.
    Nothing,
    /// True, false, a fraction or bytes of Python 3: no reader needs them.
    Other,
    /// An integer.
    Whole(i64),
    /// An integer that is larger, the lowest byte first.
    Long(&'a [u8]),
    /// Text, or a string of Python 2 that is UTF-8.
    Text(&'a str),
    /// A string of Python 2 that is not UTF-8.
    Bytes(&'a [u8]),
    /// A tuple, a list or a set.
    Items(Vec<Place>),
    /// A dictionary.
    Dict(Vec<Pair>),
    /// The name of a class or a function. Nothing is looked up.
    Class {
        /// Where Python would import it from.
        module: &'a str,
        /// Its name there.
        name: &'a str,
    },
    /// An object that Python would have made.
    Object(Box<Object>),
    /// A persistent id: a reference to something outside the pickle.
    Persistent(Place),
}

/// How an object was asked for: by a class, the arguments for it, and what is put in afterwards.
#[derive(Debug)]
pub struct Object {
    /// Whether a function is called, or a class asked for an object.
    pub made: Made,
    /// A [`Value::Class`].
    pub class: Place,
    /// A [`Value::Items`].
    pub arguments: Place,
    /// The items that are set, if it is a kind of dictionary.
    pub pairs: Vec<Pair>,
    /// The state that its attributes are set from.
    pub state: Option<Place>,
}

/// How an object comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// By a call.
    Call,
    /// By `__new__`.
    New,
}

/// All values of a pickle.
pub struct Tree<'a> {
    values: Vec<Value<'a>>,
    top: Place,
}

impl<'a> Tree<'a> {
    pub(super) fn new(values: Vec<Value<'a>>, top: Place) -> Tree<'a> {
        Tree { values, top }
    }

    /// Where the value is that the pickle is about.
    pub fn top(&self) -> Place {
        self.top
    }

    /// The value at a place.
    pub fn at(&self, place: Place) -> &Value<'a> {
        &self.values[place as usize]
    }

    /// All values with their places.
    pub fn values(&self) -> impl Iterator<Item = (Place, &Value<'a>)> {
        (0..).zip(&self.values)
    }

    /// The text at a place, if there is one.
    pub fn text(&self, place: Place) -> Option<&'a str> {
        match self.at(place) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of a string, if there is one at this place.
    pub fn bytes(&self, place: Place) -> Option<&'a [u8]> {
        match self.at(place) {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The items of the tuple, list or set at this place, if there is one.
    pub fn items(&self, place: Place) -> Option<&[Place]> {
        match self.at(place) {
            Value::Items(items) => Some(items),
            _ => None,
        }
    }

    /// The object at a place, if there is one, with the module and the name of its class.
    pub fn object(&self, place: Place) -> Option<(&Object, (&'a str, &'a str))> {
        match self.at(place) {
            Value::Object(object) => match self.at(object.class) {
                Value::Class { module, name } => Some((object, (module, name))),
                _ => None,
            },
            _ => None,
        }
    }
}
