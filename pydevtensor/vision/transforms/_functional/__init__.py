"""The functions of transforms.functional, a file for each subject."""
