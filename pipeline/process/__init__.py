"""Clock, cancellation and interrupts of the process."""
