"""What clients hear of without asking: that memories came, went or changed."""
