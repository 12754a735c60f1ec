// Drives one go-diskqueue by lines on the standard input, one line of answer for each:
//
//	put BASE64   ok
//	receive      message BASE64, or none
//	depth        depth N
//	empty        ok
//	close        ok, and the program ends
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nsqio/go-diskqueue"
)

func main() {
	folder, name := os.Args[1], os.Args[2]
	maxBytesPerFile := number(os.Args[3])
	maxMessage := number(os.Args[4])
	queue := diskqueue.New(name, folder, maxBytesPerFile, 0, int32(maxMessage), 1, time.Hour, log)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, math.MaxInt32)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		command, argument, _ := strings.Cut(in.Text(), " ")
		fmt.Fprintln(out, answer(queue, command, argument))
		out.Flush()
		if command == "close" {
			return
		}
	}
}

func answer(queue diskqueue.Interface, command, argument string) string {
	switch command {
	case "put":
		message, err := base64.StdEncoding.DecodeString(argument)
		if err == nil {
			err = queue.Put(message)
		}
		return result(err)
	case "receive":
		if queue.Depth() == 0 {
			return "none"
		}
		// The queue offers it from another goroutine, on a busy machine late.
		return "message " + base64.StdEncoding.EncodeToString(<-queue.ReadChan())
	case "depth":
		return fmt.Sprintf("depth %d", queue.Depth())
	case "empty":
		return result(queue.Empty())
	case "close":
		return result(queue.Close())
	}
	return "error no such command"
}

func result(err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	return "ok"
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func log(level diskqueue.LogLevel, format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, "%v "+format+"\n", append([]interface{}{level}, args...)...)
}
