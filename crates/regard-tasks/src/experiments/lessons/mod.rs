//! Lessons: small experiments that show why attention is what it is. Each is a function of a seed
//! that computes everything; who draws it is somebody else.

pub mod pooling;
