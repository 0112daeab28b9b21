"""python -m weir"""
import sys

from weir._watch_main import main

main(sys.argv[1:])
