//go:build !asynq026

package main

import (
	"errors"

	"github.com/hibiken/asynq"
)

func taskOf(asked newTask) (*asynq.Task, error) {
	if asked.Headers != nil {
		return nil, errors.New("this asynq knows no headers")
	}
	return asynq.NewTask(asked.Type, asked.Payload), nil
}

func headersOf(*asynq.Task) map[string]string {
	return nil
}
