"""What several test files share: views by brute force, random programs and their interpreters."""
