"""What people have a client begin with: words for an agent, with what is stored beside them."""
