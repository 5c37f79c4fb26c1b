//! One machine: reach it, know it, change it, and put it back.
