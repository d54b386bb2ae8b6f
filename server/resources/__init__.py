"""What clients read by its URI."""
