"""What every request passes on its way: plain ASGI, from the outside in."""
