"""What a site's own templates load."""
