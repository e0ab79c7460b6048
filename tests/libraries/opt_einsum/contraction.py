"""`contract`, `contract_expression`, `contract_path`, gradients"""

import torch
from opt_einsum import contract, contract_expression, contract_path

torch.manual_seed(0)
a, b, c = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4), torch.randn(4)
found = contract("ij,jk,k->i", a, b, c)
found.pow(2).sum().backward()
print(found, a.grad)
expression = contract_expression("ij,jk->ik", (2, 3), (3, 4))
print(torch.equal(expression(a, b), a @ b))
constant = contract_expression("ij,jk->ik", a, (3, 4), constants=[0])
print(constant(b), contract_path("ij,jk,k->i", a, b, c)[0])
