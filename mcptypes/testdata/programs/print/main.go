// Print is what the size of decode is measured against. It imports the package of the raw values in mcptypes.
package main

import (
	_ "encoding/json"
	"fmt"
	"os"
)

func main() { fmt.Println(len(os.Args)) }
