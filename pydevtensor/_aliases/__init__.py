"""Functions of the package and methods of Tensor whose work is that of higher parts.

torch.det() is linalg.det(), torch.group_norm() is nn.functional's, and torch.lstm()
does what nn.LSTM does; some take their arguments in another order or form.
"""
