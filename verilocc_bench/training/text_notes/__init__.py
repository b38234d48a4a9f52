"""What models of the format `text-notes` learn: the teacher and the windows."""
