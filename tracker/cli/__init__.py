"""The command `bandwatch`, one module a command."""
