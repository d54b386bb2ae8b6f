"""What queries read, laid out in immutable files beside the store: opened by every process, built by none of them."""
