//! Deploy files of every dialect, read into one checked value.
