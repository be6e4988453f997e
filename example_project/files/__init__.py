"""Documents, and what background jobs find out about them."""
