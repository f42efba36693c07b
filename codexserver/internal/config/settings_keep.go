package config

import "fmt"

// Keep says how much is kept in files.
type Keep struct {
	// Log is the size, in bytes, at which the log of approvals or a trace is renamed and begun
	// again. 0 means no limit.
	Log int64 `json:"log"`
}

// The defaults of the table keep.
var defaultKeep = Keep{16 << 20}

// minLog is the least size of a log that is renamed: some lines fit.
const minLog = 4096

func (k Keep) check() error {
	if k.Log < 0 || k.Log > 0 && k.Log < minLog {
		return fmt.Errorf("keep.log: want 0 or at least %d", minLog)
	}
	return nil
}
