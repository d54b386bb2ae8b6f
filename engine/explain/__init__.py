"""Why a memory was not found, and the smallest change that would find it."""
