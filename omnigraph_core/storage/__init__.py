"""Where bytes live: the only package that imports lance and obstore."""
