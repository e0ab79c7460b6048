"""Functions of the package that nn.functional and linalg have under another name.

torch.det() is linalg.det(), torch.group_norm() is nn.functional's, and torch.lstm()
does what nn.LSTM does; some take their arguments in another order or form.
"""
