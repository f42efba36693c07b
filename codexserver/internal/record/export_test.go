package record

import "errors"

// Kill leaves what a killed server leaves.
func (l *Log) Kill() error { return errors.Join(l.alive.Close(), l.file.Close()) }
