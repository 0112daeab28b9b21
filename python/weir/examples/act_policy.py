"""The policy of weir.examples.imitate_episodes: ACT (Action Chunking with Transformers) in PyTorch."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

# Backbones and the channels of their features; all but "small" are torchvision's.
BACKBONES = {"small": 512, "resnet18": 512, "mobilenet_v2": 1280, "mobilenet_v3_small": 576, "mobilenet_v3_large": 960}


class Block(nn.Module):
    """A basic block of ResNet, with GroupNorm because batches are small."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.GroupNorm(16, outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.GroupNorm(16, outputs))
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def make_backbone(name):
    """An untrained nn.Sequential: images (n, 3, H, W) to features (n, BACKBONES[name], H / 32, W / 32)."""
    if name == "small":
        return nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.GroupNorm(16, 64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), Block(256, 512, 2))
    try:
        import torchvision
    except ImportError as error:
        raise ImportError(f"--backbone {name} needs torchvision ({error}); pip install torchvision") from None
    # GroupNorm as above; BatchNorm would also count twice the images that --grad_checkpoint computes twice.
    model = getattr(torchvision.models, name)(weights=None, norm_layer=lambda channels: nn.GroupNorm(8, channels))
    return model.features if hasattr(model, "features") else nn.Sequential(*list(model.children())[:-2])


def sines(n, dim):
    """Sinusoidal embedding of the positions 0 .. n - 1: (n, dim)."""
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1)


def sines_2d(height, width, dim):
    """Embedding of a feature map's cells: (height * width, dim), half for the row, half for the column."""
    rows = sines(height, dim // 2)[:, None].expand(-1, width, -1)
    columns = sines(width, dim // 2)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], 2).flatten(0, 1)


class ACT(nn.Module):
    """A conditional VAE: an encoder compresses the actions to a latent, and a transformer predicts the actions from the
    latent, the state and the images. Without actions (when the policy acts) the latent is zero.

    With grad_checkpoint the backbone and the transformers keep only the inputs of their layers for the backward pass,
    which computes the rest again: the same gradients from less memory and more time."""
    LATENT = 32

    def __init__(self, state_dim, action_dim, *, chunk_size=20, hidden_dim=512, dim_feedforward=3200, backbone="small",
                 enc_layers=4, dec_layers=1, nheads=8, dropout=0.1, pre_norm=False, grad_checkpoint=False):
        super().__init__()
        dim, self.grad_checkpoint = hidden_dim, grad_checkpoint
        layer = {"d_model": dim, "nhead": nheads, "dim_feedforward": dim_feedforward, "dropout": dropout,
                 "batch_first": True, "norm_first": pre_norm}

        def norm():
            return nn.LayerNorm(dim) if pre_norm else None

        def encoder():
            return nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), enc_layers, norm(), enable_nested_tensor=False)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
        self.vae_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.vae_state = nn.Linear(state_dim, dim)
        self.vae_action = nn.Linear(action_dim, dim)
        self.vae_encoder = encoder()
        self.vae_latent = nn.Linear(dim, 2 * self.LATENT)
        self.backbone = make_backbone(backbone)
        self.features = nn.Conv2d(BACKBONES[backbone], dim, 1)
        self.latent = nn.Linear(self.LATENT, dim)
        self.state = nn.Linear(state_dim, dim)
        self.encoder = encoder()
        self.queries = nn.Parameter(torch.randn(1, chunk_size, dim))
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), dec_layers, norm())
        self.action = nn.Linear(dim, action_dim)

    def see(self, image):
        """The backbone's features."""
        if not (self.grad_checkpoint and torch.is_grad_enabled()):
            return self.backbone(image)
        # ResNet's first four are one part: alone they would keep more than they save, and ReLU changes its input.
        stem = 4 if isinstance(self.backbone[0], nn.Conv2d) else 1
        for part in (self.backbone[:stem], *self.backbone[stem:]):
            image = checkpoint(part, image, use_reentrant=False)
        return image

    def through(self, stack, x, *inputs):
        """Runs an encoder (inputs: mask, padding) or a decoder (inputs: memory)."""
        if not (self.grad_checkpoint and torch.is_grad_enabled()):
            return stack(x, *inputs)
        for layer in stack.layers:
            x = checkpoint(layer, x, *inputs, use_reentrant=False)
        return stack.norm(x) if stack.norm else x

    def compress(self, qpos, action, is_pad):
        """(latent of these actions, its KL divergence from a standard normal distribution)"""
        tokens = torch.cat([self.vae_token.expand(len(qpos), -1, -1), self.vae_state(qpos)[:, None],
                            self.vae_action(action)], 1)
        tokens = tokens + sines(tokens.shape[1], tokens.shape[2]).to(tokens)
        padding = torch.cat([is_pad.new_zeros(len(qpos), 2), is_pad], 1)
        mean, log_variance = self.vae_latent(self.through(self.vae_encoder, tokens, None, padding)[:, 0]).chunk(2, 1)
        kl = -0.5 * (1 + log_variance - mean ** 2 - log_variance.exp()).sum(1).mean()
        return mean + (log_variance / 2).exp() * torch.randn_like(mean), kl

    def forward(self, image, qpos, action=None, is_pad=None):
        """image (n, cameras, 3, H, W) in 0..1, qpos (n, state_dim) -> actions (n, chunk_size, action_dim), the KL."""
        latent, kl = qpos.new_zeros(len(qpos), self.LATENT), qpos.new_zeros(())
        if action is not None:
            latent, kl = self.compress(qpos, action, is_pad)
        seen = self.features(self.see((image.flatten(0, 1) - self.mean) / self.std))
        places = sines_2d(seen.shape[2], seen.shape[3], seen.shape[1]).to(seen)
        seen = (seen.flatten(2).transpose(1, 2) + places).reshape(len(qpos), -1, seen.shape[1])
        tokens = torch.cat([self.latent(latent)[:, None], self.state(qpos)[:, None], seen], 1)
        memory = self.through(self.encoder, tokens)
        return self.action(self.through(self.decoder, self.queries.expand(len(qpos), -1, -1), memory)), kl

    def loss(self, batch, kl_weight):
        """Mean of |predicted - action| without padding, plus the weighted KL."""
        predicted, kl = self(*batch)
        real = ~batch.is_pad.unsqueeze(-1).expand_as(predicted)
        return ((predicted - batch.action).abs() * real).sum() / real.sum().clamp(min=1) + kl_weight * kl
