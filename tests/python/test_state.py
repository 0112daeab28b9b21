"""Resuming in the middle of an epoch."""
import json
import unittest

import common
import numpy as np
import weir


def bits(batch):
    return {key: np.asarray(value).tobytes() for key, value in batch.items()}


class State(common.Data):
    def loader(self, workers=1, **options):
        return weir.Loader(self.data, **{"batch_size": 4, "num_workers": workers, "tensors": "array", **options})

    def epochs(self, n):
        with self.loader() as loader:
            return [[bits(batch) for batch in loader] for _ in range(n)]

    def test_any_batch(self):
        """The state is taken after any number of batches; the loaders have different numbers of workers."""
        whole = self.epochs(2)
        flat = whole[0] + whole[1]
        for stop in (0, 1, 4, len(whole[0]), len(whole[0]) + 3):
            with self.subTest(stop=stop), self.loader(2) as loader:
                taken = 0
                for _ in range(2):
                    for _ in loader if taken < stop else ():
                        taken += 1
                        if taken == stop:
                            break
                state = json.loads(json.dumps(loader.state_dict()))
            with self.loader(3) as loader:
                loader.load_state_dict(state)
                self.assertEqual(loader.state_dict(), state)
                rest = [bits(batch) for batch in loader]
            self.assertEqual(rest, flat[stop:stop + len(rest)])
            self.assertEqual(len(rest), len(whole[0]) - stop % len(whole[0]))

    def test_other_data(self):
        """Data, cameras, windows and views must be the same; a state without one of them is of another version."""
        with self.loader() as loader:
            state = loader.state_dict()
        for name, options in [("set of cameras", {"cameras": "top"}), ("window of steps", {"chunk_size": 7}),
                              ("view of images", {"image_size": (32, 24)})]:
            with self.loader(**options) as loader, self.assertRaisesRegex(ValueError, f"saved with another {name}, "):
                loader.load_state_dict(state)
        other = {**state["settings"], "set-of-episodes": state["settings"]["set-of-episodes"] ^ 1}
        older = {name: value for name, value in state["settings"].items() if name != "set-of-episodes"}
        with self.loader() as loader:
            for settings, why in [(other, "with another set of episodes"), (older, "by another version of weir")]:
                with self.assertRaisesRegex(ValueError, f"the state was saved {why}"):
                    loader.load_state_dict({**state, "settings": settings})

    def test_iterations_that_are_asked_for_nothing(self):
        """Unused iterators do not count as epochs."""
        whole = self.epochs(3)
        with self.loader() as loader:
            iter(loader)
            self.assertEqual(loader.state_dict()["position"], 0)
            self.assertEqual([bits(batch) for batch in loader], whole[0])
            iter(loader)
            iter(loader)
            state = loader.state_dict()
            self.assertEqual([bits(batch) for batch in loader], whole[1])
            iteration = iter(loader)
            loader.set_epoch(0)
            self.assertEqual([bits(batch) for batch in iteration], whole[2])
            self.assertEqual([bits(batch) for batch in loader], whole[0])
            loader.load_state_dict({**state, "position": len(whole[0]) + 2})
            iter(loader)
            self.assertEqual([bits(batch) for batch in loader], whole[1][2:])
            self.assertEqual([bits(batch) for batch in loader], whole[2])

    def test_set_epoch(self):
        whole = self.epochs(3)
        with self.loader() as loader:
            for epoch in (0, 1, 2, 0, 2):
                loader.set_epoch(epoch)
                self.assertEqual([bits(batch) for batch in loader], whole[epoch])
            with self.assertRaises(ValueError):
                loader.set_epoch(-1)

    def test_broken_off(self):
        """After a break, the next iteration starts the next epoch."""
        whole = self.epochs(2)
        with self.loader() as loader:
            for batch in loader:
                self.assertEqual(bits(batch), whole[0][0])
                break
            self.assertEqual([bits(batch) for batch in loader], whole[1])

    def test_epoch_of_the_state(self):
        """set_epoch with the state's epoch does not restart the epoch."""
        whole = self.epochs(1)
        with self.loader() as loader:
            iterator = iter(loader)
            next(iterator), next(iterator)
            state = loader.state_dict()
        with self.loader(0) as loader:
            loader.load_state_dict(state)
            loader.set_epoch(0)
            self.assertEqual([bits(batch) for batch in loader], whole[0][2:])

    def test_other_settings(self):
        with self.loader() as loader:
            state = loader.state_dict()
        for name, options in [("batch_size=4, the loader batch_size=5", {"batch_size": 5}), ("seed", {"seed": 1}),
                              ("shuffle=True, the loader shuffle=False", {"shuffle": False}),
                              ("train_split=1.0, the loader train_split=0.5", {"train_split": 0.5})]:
            with self.loader(**options) as loader, self.assertRaisesRegex(ValueError, name) as raised:
                loader.load_state_dict(state)
            self.assertNotIn("--", str(raised.exception))

    def test_wrong_types(self):
        """Raises a ValueError, and the loader keeps its position."""
        whole = self.epochs(1)
        with self.loader() as loader:
            state = loader.state_dict()
            self.assertEqual(state["settings"]["--train-split"], 1.0)
            self.assertNotIn("4607182418800017408", repr(state))
            settings = state["settings"]
            for wrong in (None, 7, [], "x", {}, {"weir": 1}, {**state, "weir": "1"}, {**state, "position": "3"},
                          {**state, "position": -1}, {**state, "position": 1 << 200}, {**state, "position": 0.0},
                          {**state, "split": None}, {**state, "settings": None}, {**state, "settings": [1]},
                          {**state, "settings": {}}, {**state, "settings": {**settings, "--train-split": -1}},
                          {**state, "settings": {**settings, "--train-split": 1 << 70}},
                          {**state, "settings": {**settings, "--train-split": "x"}},
                          {**state, "settings": {**settings, "--seed": None}}):
                with self.subTest(wrong=wrong), self.assertRaisesRegex(ValueError, "load_state_dict"):
                    loader.load_state_dict(wrong)
            loader.load_state_dict({**state, "settings": {**settings, "--train-split": 0x3FF0000000000000}})  # old form
            self.assertEqual([bits(batch) for batch in loader], whole[0])


if __name__ == "__main__":
    unittest.main()
