"""The functions that weir.watch times in workers, and in the training process while it loads a batch itself."""

OPENING, READ, IMAGE, VIDEO, TRANSFORM = "02_open", "03_read", "03b_image_decode", "03j_video_decode", "05_transform"

# Ways to time a function.
CALL = "call"      # every call
OPEN = "open"      # opening a file for reading; its first argument is the path
BY_PATH = "path"   # calls that name a file; h5py also makes a File of one that is open
BY_CLASS = "class"  # a method; the name of the object's class follows that of the stage
TILES = "tiles"    # PIL's load, which does nothing in a loaded image
HDF5 = "hdf5"      # reading from an object of h5py, whose file is known
ZARR = "zarr"      # reading from an array of zarr, whose folder or archive is known

# (module, names in it, stage, way, position of the path among the arguments or None)
FUNCTIONS = (
    ("builtins", "open", READ, OPEN, 0),
    ("io", "open", READ, OPEN, 0),
    ("numpy", "load fromfile loadtxt genfromtxt", READ, CALL, 0),
    ("h5py", "File.__init__", OPENING, BY_PATH, 1),
    ("h5py", "File.close", OPENING, CALL, None),
    ("h5py", "Group.__getitem__ Dataset.__getitem__ Dataset.read_direct", READ, HDF5, None),
    ("zarr", "Array.__getitem__", READ, ZARR, None),
    ("torch", "load", READ, CALL, 0),
    ("safetensors.torch", "load_file", READ, CALL, 0),
    ("pandas", "read_csv read_parquet read_pickle", READ, CALL, 0),
    ("pyarrow.parquet", "read_table", READ, CALL, 0),
    ("soundfile", "read", READ, CALL, 0),
    ("torchaudio", "load", READ, CALL, 0),
    ("tifffile", "imread", READ, CALL, 0),

    ("cv2", "imread", IMAGE, CALL, 0),
    ("cv2", "imdecode", IMAGE, CALL, None),
    ("PIL.ImageFile", "ImageFile.load", IMAGE, TILES, None),
    ("torchvision.io", "read_image", IMAGE, CALL, 0),
    ("torchvision.io", "decode_image decode_jpeg decode_png decode_webp decode_gif decode_avif", IMAGE, CALL, None),
    ("imageio", "imread", IMAGE, CALL, 0),
    ("imageio.v2", "imread", IMAGE, CALL, 0),
    ("imageio.v3", "imread", IMAGE, CALL, 0),
    ("skimage.io", "imread", IMAGE, CALL, 0),
    ("simplejpeg", "decode_jpeg", IMAGE, CALL, None),
    ("turbojpeg", "TurboJPEG.decode", IMAGE, CALL, None),

    ("torchvision.io", "read_video", VIDEO, CALL, 0),
    ("torchvision.io", "VideoReader.__next__", VIDEO, CALL, None),
    ("torchcodec.decoders", "VideoDecoder.__init__", VIDEO, CALL, 1),
    ("torchcodec.decoders", "VideoDecoder.__getitem__ VideoDecoder.get_frame_at VideoDecoder.get_frames_at "
     "VideoDecoder.get_frames_in_range VideoDecoder.get_frame_played_at VideoDecoder.get_frames_played_at "
     "VideoDecoder.get_frames_played_in_range", VIDEO, CALL, None),
    ("cv2", "VideoCapture.__init__ VideoCapture.open", VIDEO, CALL, 1),
    ("cv2", "VideoCapture.read VideoCapture.grab VideoCapture.retrieve VideoCapture.set", VIDEO, CALL, None),
    ("av", "open", VIDEO, CALL, 0),
    ("decord", "VideoReader.__getitem__ VideoReader.get_batch", VIDEO, CALL, None),

    ("cv2", "resize cvtColor warpAffine warpPerspective remap GaussianBlur", TRANSFORM, CALL, None),
    ("albumentations.core.composition", "Compose.__call__", TRANSFORM, BY_CLASS, None),
    ("albumentations.core.transforms_interface", "BasicTransform.__call__", TRANSFORM, BY_CLASS, None),
    ("transformers.image_processing_utils", "BaseImageProcessor.__call__", TRANSFORM, BY_CLASS, None),
)

# Modules whose classes are transforms: their own forward and __call__ are timed by class.
TRANSFORMS = ("torchvision.transforms.transforms", "torchvision.transforms.v2")

# Modules whose functions are compiled into types that cannot be changed, and what is not timed.
UNSEEN = (
    ("av", "PyAV's decoding"),
    ("lmdb", "lmdb's reads"),
)


def modules():
    """Names of all modules above."""
    rows = [row[0] for row in FUNCTIONS + UNSEEN] + list(TRANSFORMS)
    return list(dict.fromkeys(rows))
