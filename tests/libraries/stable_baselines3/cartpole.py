"""PPO, A2C, DQN, SAC, TD3: short training, prediction, files"""

import tempfile

import gymnasium
import numpy
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3

RULES = {
    PPO: ("CartPole-v1", {"n_steps": 64, "batch_size": 32, "n_epochs": 2}),
    A2C: ("CartPole-v1", {}),
    DQN: ("CartPole-v1", {"learning_starts": 50, "buffer_size": 500}),
    SAC: ("Pendulum-v1", {"learning_starts": 50, "buffer_size": 500}),
    TD3: ("Pendulum-v1", {"learning_starts": 50, "buffer_size": 500}),
}
for rule, (name, options) in RULES.items():
    made = gymnasium.make(name)
    model = rule(
        "MlpPolicy",
        made,
        policy_kwargs={"net_arch": [16]},
        seed=0,
        device="cpu",
        **options,
    ).learn(200)
    view, _ = made.reset(seed=3)
    action, _ = model.predict(view, deterministic=True)
    weights = sum(p.abs().sum().item() for p in model.policy.parameters())
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        again = rule.load(f"{folder}/model", device="cpu")
    same = numpy.array_equal(again.predict(view, deterministic=True)[0], action)
    print(rule.__name__, action, weights, same)
