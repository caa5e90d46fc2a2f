//! Wall and CPU clocks.
