! Calls that fail leave what they would return as it is; the error is not always asked for.
program unusual
  use mpi_f08
  implicit none
  integer :: rank, step, in, out
  type(MPI_Comm) :: made
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  made%MPI_VAL = 123456
  request%MPI_VAL = 123456
  call MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_NULL, 0, made)
  call MPI_Irecv(in, 1, MPI_INTEGER, 99, 0, MPI_COMM_WORLD, request)
  do step = 1, 3
    call MPI_Irecv(in, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, request)
    call MPI_Send(out, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end do
  call MPI_Finalize()
end program
