"""The commands of `passerelle`, one file each."""
