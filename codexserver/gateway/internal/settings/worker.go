package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// Worker are the limits of a user's worker together with all that it starts. 0 means no limit.
type Worker struct {
	// Memory is how many bytes they may use. Beyond it all of them are killed.
	Memory Bytes `json:"memory"`
	// CPU is how many cores they may use.
	CPU float64 `json:"cpu"`
	// PIDs is how many processes and threads they may have.
	PIDs int `json:"pids"`
}

// Less than this is a mistake: no worker could start.
const (
	minMemory = 64 << 20
	minPIDs   = 64
)

// Linux counts the time of all cores in microseconds of 100 ms, and accepts no less than one millisecond.
const (
	minCPU = 0.01
	maxCPU = 1 << 16
)

func (w *Worker) check() error {
	switch {
	case w.Memory != 0 && w.Memory < minMemory:
		return errors.New("worker.memory: want at least 64MiB")
	case w.CPU != 0 && (w.CPU < minCPU || w.CPU > maxCPU):
		return fmt.Errorf("worker.cpu: want a number of cores from %v to %d", minCPU, maxCPU)
	case w.PIDs != 0 && w.PIDs < minPIDs:
		return fmt.Errorf("worker.pids: want at least %d", minPIDs)
	}
	return nil
}

// Bytes is a number of bytes, written with a unit, such as "8GiB".
type Bytes int64

// units are the units of [Bytes], as powers of two.
var units = map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *Bytes) UnmarshalJSON(value []byte) error {
	var text string
	if err := json.Unmarshal(value, &text); err == nil {
		number := strings.TrimRight(text, "KMGTiB")
		n, err := strconv.ParseUint(number, 10, 63)
		if shift, known := units[text[len(number):]]; err == nil && known && n <= math.MaxInt64>>shift {
			*b = Bytes(n << shift)
			return nil
		}
	}
	return fmt.Errorf("%.40s: want a whole number with KiB, MiB, GiB or TiB, such as \"8GiB\"", value)
}
